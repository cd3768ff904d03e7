"""The composition of most methods: who (pairing), how (mixing), where (layer), how much (lam)."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import decode_from, encode_to, evaluating, resolve_layers
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.mixing.base import Mixing, Transform
from cmixup.mixing.lam import Lam
from cmixup.mixing.linear import Linear, interpolate
from cmixup.pairing.base import Pairing
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, step_seeds
from cmixup.training.losses import LOSSES
from cmixup.training.method import Method
from cmixup.training.model_stack import ModelStack
from cmixup.training.training import Training


class Mix(Method):
    """Mixes each row with a partner and fits the mixed label: `l(f(x~), lam y_i + (1 - lam) y_j)`.

    Args:
        pairing: who is mixed with whom.
        lam: the draws of the mixing weight, such as `Beta(alpha)`.
        layer: where: "input", "hidden" (the backbone's own mix point, or one of several that each batch draws) or the
            name of one of its mix points.
        mixing: how two states become one; linear by default.
        transform: changes the states of rows and of partners before they are mixed.
    """

    per_run: ClassVar[tuple[str, ...]] = ("pairing", "lam")  # they only draw
    losses = tuple(LOSSES)

    def __init__(
        self, pairing: Pairing, lam: Lam, layer: str = "input", mixing: Mixing | None = None,
        transform: Transform | None = None,
    ):  # fmt: skip
        super().__init__()
        self.pairing, self.lam, self.layer = pairing, lam, layer
        self.mixing, self.transform = mixing or Linear(), transform

    @property
    def stackable(self) -> bool:  # type: ignore[override]
        return self.mixing.stackable

    @property
    def divisible(self) -> bool:
        default_hooks = type(self).step is Mix.step and type(self).begin is Mix.begin
        return default_hooks and type(self.mixing).step is Mixing.step

    def check_batch(self, batch_size: int) -> None:
        self.pairing.check_batch(batch_size)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        self.layers = resolve_layers(model, self.layer)
        if self.mixing.inputs and self.layers != ("input",):
            name = type(self.mixing).__name__
            raise InputError(f"mixing {name} is of inputs: layer must be input, got {self.layer!r}")
        for layer in self.layers if self.mixing.images else ():
            self._check_images(model, data.train, layer)
        self.pairing.check_model(model)
        self.pairing.fit(data.train)
        self.mixing.fit(data.train, model, streams)

    def _check_images(self, model: nn.Module, train: Split, layer: str) -> None:
        """Refuse states that are neither images `(B, C, H, W)` nor clips; of a single pixel no part could be mixed."""
        with evaluating(model):
            state = encode_to(model, train.x[torch.arange(min(2, len(train)))], layer)
        if not isinstance(state, Tensor) or state.ndim < 4 or max(state.shape[-2:]) < 2:
            actual = tuple(state.shape) if isinstance(state, Tensor) else type(state).__name__
            expected = f"images (B, C, H, W) at layer {layer!r}, got {actual} of {train.name}"
            raise InputError(f"mixing {type(self.mixing).__name__} needs {expected}")

    def check_partners(self, method_name: str) -> None:
        """Raise `InputError` unless partners are known before the step, where the method `method_name` reads them."""
        if self.pairing.in_step:
            name = type(self.pairing).__name__
            raise InputError(f"pairing must give partners before the step for {method_name}, got {name}")

    def begin(self, training: Training) -> None:
        self.pairing.begin(training)
        self.mixing.begin(training)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return partner or candidates, lambda, the mixing's draws, and `layer: (M,)` if there are several."""
        draws = self.pairing.named_draws(order, streams.partners)
        draws |= {"lam": self.lam.draw(order.sizes, streams.lam), **self.mixing.draw(order, streams.mixing)}
        if self.mixing.pairs > 1:
            draws["other_partner"] = self.pairing.draw(order, streams.partners)
            draws["other_lam"] = self.lam.draw(order.sizes, streams.lam)
        draws |= self.draw_layer(order, streams.mixing)
        if self.transform is not None:
            draws["seed"] = step_seeds(order.sizes, streams.mixing)
        return draws

    def draw_layer(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `layer: (M,)`, one a batch, if there are several."""
        n_layers, sizes = len(self.layers), order.sizes
        return {"layer": np.repeat(rng.integers(n_layers, size=len(sizes)), sizes)} if n_layers > 1 else {}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of the mixed batch, weighted by the draw `weight` if there is one."""
        partner = batch.rows("partner", f"method {type(self).__name__}")
        layer = self.layers[int(batch.draws["layer"][0])] if "layer" in batch.draws else self.layers[0]
        states = [encode_to(model, rows.x, layer) for rows in (batch, partner)]
        if self.transform is not None:
            states = [self.transform.of(s, rows, batch.rng) for s, rows in zip(states, (batch, partner), strict=True)]
        mixed, weight = self.mixing(*states, batch.draws)
        target = interpolate(batch.y, partner.y, weight)
        return self.error(decode_from(model, mixed, layer), target, batch.draws.get("weight"))

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        return self.mixing.step(self.loss, stack, self.pairing.with_partners(stack.model, batch))

    def diagnostics(self) -> dict[str, float | str]:
        return self.pairing.diagnostics()
