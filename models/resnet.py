"""ResNet, the network of images, which lies in the library: the wheel alone predicts with runs that name it."""

from cmixup.networks.resnet import ResNet

__all__ = ["ResNet"]
