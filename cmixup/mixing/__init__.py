"""Mixing: how two examples become one, and the draws of lambda."""

from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import Linear, mix

__all__ = ["Beta", "Linear", "mix"]
