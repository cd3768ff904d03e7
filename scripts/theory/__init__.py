"""Simulations of the three theorems, the numbers that they leave, and the parts of their page; nothing is trained."""
