"""ResNet, the network of images, which lies in the library: the wheel alone predicts with runs that name it."""

from cmixup.networks.resnet import ResNet, resnet18, resnet50

__all__ = ["ResNet", "resnet18", "resnet50"]
