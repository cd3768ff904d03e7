"""TabM: k networks as one, by adapters of rank one (Gorishniy, Kotelnikov and Babenko 2025, ICLR, arXiv 2410.24210).

A hidden layer of member i is `s_i * (W (r_i * x)) + b_i` with W shared (BatchEnsemble), then ReLU and dropout; the last
layer is each member's own. Only the first adapter r begins at random signs, all others at 1, so members differ from the
first layer on. Written from the paper's equations (Section 3); a test compares it with the authors' package `tabm`
where that is installed.

Members are trained by the mean of their own losses and averaged in prediction. So the output is `(..., k, B, d_y)`
while training, which `cmixup.training.losses` means over members, and the mean `(..., B, d_y)` in evaluation.
Differences from the paper: no embeddings of numeric features (its plain variant), and the driver's optimiser (Adam, not
AdamW).
"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from cmixup.backbone import TableNetwork
from cmixup.errors import check_count
from cmixup.seeding import dropout


class AdaptedLinear(nn.Module):
    """A linear layer that k members share but for adapters and biases; r begins at signs if `random`, else at 1."""

    def __init__(self, fan_in: int, fan_out: int, k: int, *, random: bool):
        super().__init__()
        bound = 1 / math.sqrt(fan_in)
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        signs = torch.randint(0, 2, (k, fan_in)).float() * 2 - 1
        self.r = nn.Parameter(signs if random else torch.ones(k, fan_in))
        self.s = nn.Parameter(torch.ones(k, fan_out))
        self.bias = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound).repeat(k, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return `(..., B, k, fan_out)` of `(..., B, k, fan_in)`."""
        sums = (x * self.r.unsqueeze(-3)).flatten(-3, -2) @ self.weight.mT
        return torch.unflatten(sums, -2, x.shape[-3:-1]) * self.s.unsqueeze(-3) + self.bias.unsqueeze(-3)


class TabM(TableNetwork):
    """k members of one network of ReLU layers; hidden states are `(..., B, k, width)`.

    Args:
        in_shape: shape of one input, `(d,)`.
        out_features: label width d_y.
        k: members; the paper has 32.
        width, depth, dropout: of the hidden layers, see `TableNetwork`.
    """

    draws = False

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int, k: int = 32, width: int = 512, *, depth: int = 3,
        dropout: float = 0.1,
    ):  # fmt: skip
        super().__init__(in_shape, width, depth, dropout)
        self.k = check_count("k", k, 1)
        fans = [*in_shape, *[width] * depth]
        self.blocks = nn.ModuleList(
            AdaptedLinear(fan_in, fan_out, k, random=n == 0) for n, (fan_in, fan_out) in enumerate(pairwise(fans))
        )
        bound = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(k, width, out_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(k, out_features).uniform_(-bound, bound))

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Run the blocks between two mix points; the first one gives every member its copy of the input."""
        if first == 0 < last:
            state = state.unsqueeze(-2).expand(*state.shape[:-1], self.k, state.shape[-1])
        for block in list(self.blocks)[first:last]:
            state = dropout(relu(block(state)), self.dropout, self.training)
        return state

    def pool(self, state: Tensor) -> Tensor:
        """Return the states of all members side by side, `(..., B, k width)`."""
        return state.flatten(-2)

    def head(self, features: Tensor) -> Tensor:
        """Return the members' predictions `(..., k, B, d_y)`, in evaluation their mean `(..., B, d_y)`."""
        states = torch.unflatten(features, -1, (self.k, -1)).transpose(-3, -2)
        members = states @ self.weight + self.bias[..., None, :]
        return members if self.training else members.mean(dim=-3)
