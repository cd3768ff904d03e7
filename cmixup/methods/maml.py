"""MAML (Finn et al. 2017, arXiv 1703.03400) as Yin et al. 2020 use it on pose tasks (google-research
meta_learning_without_memorization/pose_code/maml_vanilla.py).

The inner loop adapts the decoder alone, by gradient steps on all support examples; the outer loss is the query's mean
squared error after it. Differences from the original: the inner loop is vectorised over the tasks of a batch
(`torch.func`), and predictions after more steps than in training are scored beside those after as many.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from cmixup.errors import InputError, check_count, check_nonnegative
from cmixup.mixing.linear import interpolate
from cmixup.training.batch import Batch, PredictFn
from cmixup.training.method import Method, squared_error

Parameters = Mapping[str, Tensor]


class Mixed(NamedTuple):
    """How the query of each task is mixed with its support: `lam * support[pair] + (1 - lam) * query` at `layer`."""

    pair: Tensor  # (B, Q) int64
    lam: Tensor  # (B, Q) float32
    layer: str  # a mix point of the model


def adapt(
    net: nn.Module, start: str, parameters: Parameters, support: Tensor, labels: Tensor, *, lr: float, steps: int
) -> Parameters:  # fmt: skip
    """Return the parameters of `net` after gradient steps from `parameters` on one task's support.

    The support `(K, ...)` with labels `(K,)` enters at the mix point `start`: `net(support, start)` predicts `(K, 1)`.
    """

    def error(weights: Parameters) -> Tensor:
        return (functional_call(net, dict(weights), (support, start)).squeeze(-1) - labels).square().mean()

    for _ in range(steps):
        gradients = grad(error)(parameters)
        parameters = {name: value - lr * gradients[name] for name, value in parameters.items()}
    return parameters


@dataclass(frozen=True)
class InnerLoop:
    """How the decoder adapts to a task: gradient steps on the mean squared error of its support."""

    inner_lr: float
    inner_steps: int = 5  # in training and when predicting
    report_steps: int = 20  # scores of the test split after so many are reported, too

    def __post_init__(self) -> None:
        check_nonnegative("inner_lr", self.inner_lr)
        check_count("inner_steps", self.inner_steps)
        check_count("report_steps", self.report_steps)


class MAML(Method):
    """Learns weights from which a few gradient steps on a task's support fit its query.

    Args:
        inner: how the model adapts to a task.
    """

    stackable = False
    tasks = True

    def __init__(self, inner: InnerLoop):
        super().__init__()
        self.inner = inner

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return squared_error(self.adapted(model, batch.x, self.inner.inner_steps), batch.y)

    def predictors(self) -> Mapping[str, PredictFn]:
        steps, report_steps = self.inner.inner_steps, self.inner.report_steps
        counts = {"": steps} if report_steps == steps else {"": steps, f"{report_steps}_steps": report_steps}
        return {name: partial(self.adapted, steps=count) for name, count in counts.items()}

    def encode(self, model: Any, x: Tensor) -> Tensor:
        """Return the encoder's output `(B, n, ...)` for the views `(B, n, ...)` of B tasks."""
        return model.encoder(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def codes(self, model: nn.Module, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's outputs for support and query, in one pass."""
        shots = support.shape[1]
        code = self.encode(model, torch.cat([support, query], dim=1))
        return code[:, :shots], code[:, shots:]

    def adapted(self, model: nn.Module, x: Any, steps: int, mixed: Mixed | None = None) -> Tensor:
        """Return predictions `(B, Q)` of the query of B tasks `x`, an `Episode`, after `steps` inner steps.

        The model has a decoder that predicts from the mix point "encoder". With `mixed` the query is mixed and the
        support stays as it is; hidden states of both come from adapted weights.
        """
        if not (hasattr(model, "encoder") and hasattr(model, "decoder")):
            raise InputError(f"model must have an encoder and a decoder to adapt, got {type(model).__name__}")
        support, query = x.support, x.query
        if mixed and mixed.layer == "input":
            query, mixed = interpolate(_gather(support, mixed.pair), query, mixed.lam), None
        net, start = model.decoder, "encoder"
        assert isinstance(net, nn.Module)
        support, query = self.codes(model, support, query)
        if mixed and mixed.layer == start:
            query, mixed = interpolate(_gather(support, mixed.pair), query, mixed.lam), None
        parameters, lr = dict(net.named_parameters()), self.inner.inner_lr
        pairs = (_gather(support, mixed.pair), mixed.lam) if mixed else ()
        layer = mixed.layer if mixed else start

        def predict_task(support: Tensor, labels: Tensor, query: Tensor, *pair: Tensor) -> Tensor:
            weights = dict(adapt(net, start, parameters, support, labels, lr=lr, steps=steps))
            if pair:
                first, second = (functional_call(net, weights, (state, start, layer)) for state in (pair[0], query))
                query = interpolate(first, second, pair[1])
            return functional_call(net, weights, (query, layer)).squeeze(-1)

        return vmap(predict_task)(support, x.labels, query, *pairs)


def _gather(support: Tensor, pair: Tensor) -> Tensor:
    """Return `support: (B, K, ...)` at `pair: (B, Q)`."""
    return support[torch.arange(len(pair), device=pair.device)[:, None], pair]
