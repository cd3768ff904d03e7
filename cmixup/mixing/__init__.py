"""How two examples become one, and with what lambda."""

from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import Linear, mix

__all__ = ["Beta", "Linear", "mix"]
