"""Mixing: how two examples become one, and the draws of lambda."""
