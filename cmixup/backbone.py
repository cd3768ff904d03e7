"""The interface of models whose hidden states can be mixed and whose representations can be compared."""

import contextlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from cmixup.errors import InputError, check_choice, check_count, check_nonnegative


class Backbone(nn.Module):
    """A regressor that can stop at a mix point and go on from it.

    A subclass implements `encode` and `decode` for the points it lists in `layers`, and `features` and `head`. A hidden
    state is a tensor or a tuple of tensors, each `(B, ...)`. A class that draws from no generator of PyTorch's in
    training says `draws = False` and trains faster (`cmixup.seeding.may_draw`); it drops by `cmixup.seeding.dropout`.
    """

    layers: ClassVar[tuple[str, ...]] = ("input",)  #: names of the mix points, "input" first
    default_layer: ClassVar[str | None] = None  #: the point of `layer="hidden"`, as in the released code
    #: Names that stand for several points, one of which is drawn for every batch; not for models that are stackable.
    layer_choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: Whether parameters with a leading axis of models, and inputs `(E, B, ...)`, run E models at once.
    stackable: ClassVar[bool] = False
    #: Whether it may have two outputs for each label (`train.loss=gaussian`).
    variances: ClassVar[bool] = True
    notes: tuple[str, ...] = ()  #: facts for a reader of its results (weights it started from)

    def encode(self, x: Tensor, layer: str) -> Any:
        """Run from the input `(B, ...)` to mix point `layer`; here "input" alone is known."""
        if layer != "input":
            raise InputError(f"layer must be one of {', '.join(self.layers)}, got {layer!r}")
        return x

    def decode(self, state: Any, layer: str) -> Tensor:
        """Run from mix point `layer` to the prediction `(B, d_y)`; here "input" alone is known."""
        if layer != "input":
            raise InputError(f"layer must be one of {', '.join(self.layers)}, got {layer!r}")
        return self(state)

    def features(self, x: Tensor) -> Tensor:
        """Return the penultimate representation `(B, D)`."""
        raise InputError(f"model {type(self).__name__} offers no features")

    def head(self, features: Tensor) -> Tensor:
        """Return the prediction `(B, d_y)` from `features`."""
        raise InputError(f"model {type(self).__name__} offers no head")

    def forward(self, x: Tensor) -> Tensor:
        """Return the prediction `(B, d_y)` for inputs `(B, ...)`."""
        return self.head(self.features(x))


class Blockwise(Backbone):
    """A backbone of blocks that run one after another, with a mix point after each; a subclass implements `run`."""

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Run the blocks between the mix points `layers[first]` and `layers[last]`."""
        raise InputError(f"model {type(self).__name__} offers no blocks")

    def pool(self, state: Tensor) -> Tensor:
        """Return the features of the last block's output; here they are the same."""
        return state

    def encode(self, x: Tensor, layer: str) -> Tensor:
        """Run inputs `(..., B, ...)` to mix point `layer`."""
        return self.run(x, 0, self._place(layer))

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Run from mix point `layer` to predictions `(..., B, d_y)`."""
        return self.head(self.pool(self.run(state, self._place(layer), len(self.layers) - 1)))

    def features(self, x: Tensor) -> Tensor:
        """Return the features that the head reads, `(..., B, D)`."""
        return self.pool(self.run(x, 0, len(self.layers) - 1))

    def _place(self, layer: str) -> int:
        return self.layers.index(check_choice("layer", layer, self.layers))


class TableNetwork(Blockwise):
    """A network of rows `(d,)` whose `depth` hidden layers of `width` units are its blocks; it stacks.

    Mix points are `input` and `block1` to `block{depth}`; `dropout` is the share of hidden units dropped in training.
    """

    default_layer: ClassVar[str | None] = "block1"
    stackable: ClassVar[bool] = True

    def __init__(self, in_shape: tuple[int, ...], width: int, depth: int, dropout: float = 0.0):
        super().__init__()
        if len(in_shape) != 1:
            raise InputError(f"in_shape must be (features,) for {type(self).__name__}, got {tuple(in_shape)}")
        check_count("width", width, 1)
        check_count("depth", depth, 1)
        if check_nonnegative("dropout", dropout) >= 1:
            raise InputError(f"dropout must be below 1, got {dropout!r}")
        self.dropout = dropout
        self.layers = ("input", *(f"block{n}" for n in range(1, depth + 1)))  # type: ignore[misc] # of this depth


class StackLinear(nn.Linear):
    """`nn.Linear` that also takes weights `(E, out, in)`, biases `(E, out)` and inputs `(E, B, in)`."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `(B, out)`, or `(E, B, out)` for a stack."""
        if self.weight.ndim == 2:
            return super().forward(x)
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias.unsqueeze(-2), x, self.weight.mT)


def mlp(*widths: int) -> nn.Sequential:
    """Return fully connected layers of these widths, inputs first, with ReLU between them; they stack."""
    parts = [part for n, m in pairwise(widths) for part in (StackLinear(n, m), nn.ReLU())]
    return nn.Sequential(*parts[:-1])


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Run a block without gradients, with the model in evaluation mode, which it leaves afterwards."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def encode_to(model: nn.Module, x: Any, layer: str) -> Any:
    """Return the state of inputs `(..., B, ...)` at mix point `layer`; for "input" any model will do."""
    return x if layer == "input" else model.encode(x, layer)  # type: ignore[operator]


def decode_from(model: nn.Module, state: Any, layer: str) -> Tensor:
    """Return the prediction `(..., B, d_y)` from a state at mix point `layer`."""
    return model(state) if layer == "input" else model.decode(state, layer)  # type: ignore[operator]


def resolve_layer(model: nn.Module, layer: str) -> str:
    """Return the mix point of `model` that `layer` ("input", "hidden" or a name) stands for, or raise `InputError`."""
    # Any model has the one point "input", as the class itself.
    backbone: Backbone | type[Backbone] = model if isinstance(model, Backbone) else Backbone
    name = backbone.default_layer if layer == "hidden" else layer
    if name is None or name not in backbone.layers:
        offered = ", ".join(backbone.layers)
        raise InputError(f"layer must be a mix point of {type(model).__name__} ({offered}), got {layer!r}")
    return name


def resolve_layers(model: nn.Module, layer: str) -> tuple[str, ...]:
    """Return the mix points that `layer` stands for: one, or several, from which each batch draws one."""
    backbone: Backbone | type[Backbone] = model if isinstance(model, Backbone) else Backbone
    name = backbone.default_layer if layer == "hidden" else layer
    return backbone.layer_choices.get(str(name)) or (resolve_layer(model, layer),)
