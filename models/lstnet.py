"""LSTNet: the forecaster of Exchange-Rate and Electricity (Lai et al. 2018, "Modeling Long- and Short-Term Temporal
Patterns with Deep Neural Networks"; laiguokun/LSTNet models/LSTNet.py, copied into huaxiuyao/C-Mixup src/models.py).

A convolution over time and all series, ReLU, dropout; a GRU over its output; a second branch (`skip` or `attention`);
a linear layer on both; plus an autoregressive highway, one linear layer that every series shares.

The paper names LST-Attn, the released code runs the skip variant; both are here. The released code mixes hidden states
after the convolution, so the highway, which is linear, gets the mixed input.

The highway carries recent values to the output by one weight a step for all series, so the output's unit must be the
input's, up to a scale that all series share. Where inputs are divided by their maxima (Exchange-Rate, Electricity),
labels divided by the standard deviation of each series (`train.label_scaling=standard`) need a weight for each, which
it does not have: use `none` or `centre`. Inputs of `dataset=series` are standardised, and so must be its labels.

Differences from the original code: the convolution is one-dimensional over m channels instead of two-dimensional over
one channel, the same sums with the weight's axes in another order; inputs may hold series that are not predicted, and
several steps may be, each with a highway of its own; where the convolution's output is a multiple of 24
steps long (not for the paper's window of 168), the skip branch reads all its days, where the original leaves the oldest
out; attention (not in the original code) looks back over all GRU states of the window, the last one included.

Shapes below are a single model's; every tensor of a stack has a leading axis of E models. Dropout draws from PyTorch's
generator: one draw for the whole stack, so that each of its models has masks of its own, but not those it has alone.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from cmixup.backbone import Backbone, StackLinear
from cmixup.errors import InputError, check_choice, check_count
from cmixup.seeding import dropout, generator_for
from models.sequences import StackConv1d, StackGRU

KERNEL, HIGHWAY, SKIP, SKIP_HIDDEN, DROPOUT = 6, 24, 24, 5, 0.2  # src/config.py
SCORES = ("dot", "cosine", "mlp")


class Dropout(nn.Module):
    """Dropout whose masks cost a sixth of PyTorch's on a CPU: four places share a random 64-bit number.

    A place is dropped with probability p rounded to a multiple of 2^-16; 0.2 becomes 0.199997.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Return x with a random part of it zero and the rest divided by 1 - p, in training mode."""
        if not self.training or x.device.type != "cpu":
            return dropout(x, self.p, self.training)
        numbers = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        numbers.random_(-(2**63), None, generator=generator_for(x.device))
        level = numbers.view(torch.int16)[: x.numel()].view(x.shape)
        return x * torch.where(level < round(self.p * 2**16) - 2**15, 0.0, 1 / (1 - self.p))


class Skip(nn.Module):
    """A GRU that takes every `SKIP`-th step, so that it sees the same hour of earlier days.

    Of the `steps` T of the convolution's output it reads the last `T // SKIP * SKIP`; the original divides
    `window - 6 = T - 1`.
    """

    def __init__(self, channels: int, steps: int):
        super().__init__()
        self.jumps = steps // SKIP
        if self.jumps < 1:
            raise InputError(
                f"window must be {SKIP + KERNEL - 1} or more for the skip variant, got {steps + KERNEL - 1}"
            )
        self.gru = StackGRU(channels, SKIP_HIDDEN)
        self.width = SKIP * SKIP_HIDDEN

    def forward(self, convolved: Tensor, states: Tensor) -> Tensor:
        """Return `(B, 120)` from the conv map `(B, C, T)`; the GRU states `(T, B, R)` are not used."""
        in_time = convolved.movedim(-1, -3).mT[..., -self.jumps * SKIP :, :, :]  # (T, C, B), as it lies in memory
        days = torch.unflatten(in_time, -3, (self.jumps, SKIP)).transpose(-3, -2).flatten(-2)  # (jumps, C, 24 B)
        _, last = self.gru(days.mT)
        return last.unflatten(-2, (SKIP, -1)).transpose(-3, -2).flatten(-2)


class Attention(nn.Module):
    """A weighted mean of all GRU states, `c = H softmax(score(H, h))` for the last state h.

    Args:
        hidden: width R of the GRU.
        score: "dot" (H^T h), "cosine", or "mlp" (one tanh layer of width R on both).
    """

    def __init__(self, hidden: int, score: str):
        super().__init__()
        self.score = check_choice("score", score, SCORES)
        self.width = hidden
        if score == "mlp":
            self.mlp = nn.Sequential(StackLinear(2 * hidden, hidden), nn.Tanh(), StackLinear(hidden, 1, bias=False))

    def weights(self, states: Tensor) -> Tensor:
        """Return the attention `(T, B)` that the last of `states: (T, B, R)` pays to each; it sums to 1 over T."""
        last = states[..., -1:, :, :]
        if self.score == "dot":
            scores = (states * last).sum(dim=-1)
        elif self.score == "cosine":
            scores = cosine_similarity(states, last, dim=-1)
        else:
            pairs = torch.cat([states, last.expand_as(states)], dim=-1)
            scores = self.mlp(pairs.flatten(-3, -2)).reshape(states.shape[:-1])
        return scores.softmax(dim=-2)

    def forward(self, convolved: Tensor, states: Tensor) -> Tensor:
        """Return `(B, R)` from the GRU states `(T, B, R)`; the conv map is not used."""
        return (self.weights(states)[..., None] * states).sum(dim=-3)


class LSTNet(Backbone):
    """LSTNet with a skip branch or with attention.

    Args:
        in_shape: shape of one input, `(window, m)` for m series.
        out_features: label width, `steps` times the number of predicted series, which are the first of the m.
        channels: width C of the convolution.
        hidden: width R of the GRU.
        variant: "skip" (released code) or "attention" (named in the paper).
        score: how attention compares two states, see `Attention`.
        steps: that are predicted; labels of the first step come first.

    Raises:
        InputError: a window too short for the network, labels of another width, an unknown variant or score.
    """

    layers = ("input", "conv")
    default_layer = "conv"
    draws = False
    stackable = True
    variances = False  # its highway takes every output for a series

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int, channels: int = 50, hidden: int = 50, *,
        variant: str = "skip", score: str = "dot", steps: int = 1,
    ):  # fmt: skip
        super().__init__()
        if len(in_shape) != 2:
            raise InputError(f"in_shape must be (window, series) for LSTNet, got {tuple(in_shape)}")
        window, series = in_shape
        if window < HIGHWAY:
            raise InputError(f"window must be {HIGHWAY} or more for LSTNet, got {window}")
        check_count("steps", steps, 1)
        if out_features % steps or out_features > steps * series:
            most = (
                f"at most {series}, the number of series" if steps == 1 else f"{steps} steps of at most {series} series"
            )
            raise InputError(f"out_features must be {most}, for LSTNet, got {out_features}")
        check_count("channels", channels, 1)
        check_count("hidden", hidden, 1)
        check_choice("variant", variant, ("skip", "attention"))
        check_choice("score", score, SCORES)
        self.conv = StackConv1d(series, channels, KERNEL)
        self.gru = StackGRU(channels, hidden)
        self.branch = Skip(channels, window - KERNEL + 1) if variant == "skip" else Attention(hidden, score)
        self.out = StackLinear(hidden + self.branch.width, out_features)
        self.highway = StackLinear(HIGHWAY, steps)
        self.predicted = out_features // steps
        self.dropout = Dropout(DROPOUT)

    def encode(self, x: Tensor, layer: str) -> Tensor | tuple[Tensor, Tensor]:
        """Run inputs `(B, window, m)` to `layer`; "conv" gives (conv map `(B, C, T)`, highway input `(B, 24, ...)`)."""
        if layer == "conv":
            return self._convolve(x), x[..., -HIGHWAY:, : self.predicted]
        return super().encode(x, layer)

    def decode(self, state: Tensor | tuple[Tensor, Tensor], layer: str) -> Tensor:
        if layer == "conv":
            convolved, recent = state
            return self.head(self._summarise(convolved)) + self._autoregress(recent)
        return super().decode(state, layer)

    def features(self, x: Tensor) -> Tensor:
        """Return `[r, s]`, `(B, R + 120)`, or `[h, c]`, `(B, 2 R)`, for attention."""
        return self._summarise(self._convolve(x))

    def head(self, features: Tensor) -> Tensor:
        """Return `(B, d_y)`: the prediction without its highway, which does not pass through the features."""
        return self.out(features)

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions `(B, d_y)` for inputs `(B, window, m)`: `head(features(x))` plus the highway."""
        return self.decode(self.encode(x, "conv"), "conv")

    def _convolve(self, x: Tensor) -> Tensor:
        in_time = torch.relu(self.conv(x.mT)).movedim(-1, -3)  # (T, B, C), which lies in memory as (T, C, B)
        return self.dropout(in_time.mT).mT.movedim(-3, -1)

    def _summarise(self, convolved: Tensor) -> Tensor:
        states, last = self.gru(convolved.movedim(-1, -3))
        return self.dropout(torch.cat([last, self.branch(convolved, states)], dim=-1))

    def _autoregress(self, recent: Tensor) -> Tensor:
        series = recent.mT
        steps = self.highway(series.flatten(-3, -2)).unflatten(-2, series.shape[-3:-1])
        return steps.mT.flatten(-2)
