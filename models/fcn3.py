"""FCN3, the network of tables, which lies in the library: the wheel alone predicts with runs that name it."""

from cmixup.networks.fcn3 import FCN3

__all__ = ["FCN3"]
