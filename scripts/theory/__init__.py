"""The simulations of the three theorems, their figures and their page."""
