"""MR-MAML on weights (Yin et al. 2020, arXiv 1912.03820; google-research
meta_learning_without_memorization/pose_code/maml_bbb.py): MAML whose encoder has Gaussian weights, kept near a prior.

As there, biases are neither drawn nor penalised, and support and query see weights of their own. Differences from the
original: these are drawn once a step, for all its tasks; the scales start at one value instead of N(-20, 0.1) before
the softplus; predictions use the means; one optimiser for all parameters.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import softplus

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_nonnegative, check_positive
from cmixup.methods.maml import MAML, InnerLoop
from cmixup.seeding import Streams, generator_for
from cmixup.training.batch import Batch

START = -20.0  # of the scales, before the softplus: almost no noise


class MRMAML(MAML):
    """`MAML` with weights w ~ N(mu, softplus(rho)^2) in the encoder and the penalty beta KL(q(w) || N(0, prior^2)).

    Weights are the encoder's parameters of two axes or more. `fit` adds their scales to the model, as `model.rho`; the
    encoder holds the means. The penalty does not depend on the decoder, so adding it to the loss trains the decoder on
    the query alone, as the original does.

    Args:
        inner: see `MAML`.
        beta: weight of the KL divergence, which is summed over all weights.
        prior: standard deviation of the prior; 1 (Yin et al.) or 0.1 (boschresearch).
    """

    def __init__(self, inner: InnerLoop, beta: float = 1e-4, prior: float = 1.0):
        super().__init__(inner)
        self.beta, self.prior = check_nonnegative("beta", beta), check_positive("prior", prior)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        if not isinstance(getattr(model, "encoder", None), nn.Module):
            raise InputError(f"model must have an encoder and a decoder to adapt, got {type(model).__name__}")
        model.rho = nn.ParameterList([torch.full_like(mu.detach(), START) for _, mu in _means(model)])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return super().loss(model, batch) + self.beta * self.divergence(model)

    def encode(self, model: Any, x: Tensor) -> Tensor:
        """Encode with weights drawn from the run's stream for training; with the means in evaluation mode."""
        if not model.training:
            return super().encode(model, x)
        weights = {
            name: mu + softplus(r) * torch.empty_like(mu).normal_(generator=generator_for(mu.device))
            for (name, mu), r in zip(_means(model), model.rho, strict=True)
        }
        return functional_call(model.encoder, weights, (x.flatten(0, 1),)).unflatten(0, x.shape[:2])

    def codes(self, model: nn.Module, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's outputs for support and query, each with a draw of its own."""
        return self.encode(model, support), self.encode(model, query)

    def divergence(self, model: Any) -> Tensor:
        """Return KL(q || prior) summed over the encoder's weights, a scalar of 0 or more."""
        weights = zip(_means(model), model.rho, strict=True)
        return torch.stack([gaussian_divergence(mu, softplus(r), self.prior) for (_, mu), r in weights]).sum()


def _means(model: Any) -> list[tuple[str, Tensor]]:
    """Return the names and means of the weights that are drawn: all of the encoder's parameters but its biases."""
    return [(name, mu) for name, mu in model.encoder.named_parameters() if mu.ndim > 1]


def gaussian_divergence(mean: Tensor, scale: Tensor, prior: float) -> Tensor:
    """Return KL(N(mean, scale^2) || N(0, prior^2)), summed over all entries."""
    ratio = scale / prior
    return 0.5 * (ratio.square() + (mean / prior).square() - 1 - 2 * ratio.log()).sum()
