"""MixRL / RegMix (Hwang and Whang 2021, arXiv 2106.03374); no public code found.

A reconstruction (spec A8): for every example a policy network says how many nearest neighbours it may be mixed with,
learned by REINFORCE from the validation loss of predictors trained for a few steps, in the way of DVRL (google-research
dvrl/dvrl.py). Differences from DVRL: the baseline is a moving average, the reward is divided by its running standard
deviation, and an entropy bonus replaces the hinge on the selection probability. The network sees standardised inputs
and labels, not features of another model. The validation split serves the search and the choice of the checkpoint:
expect optimism there. The test split is never touched.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.errors import InputError, as_number, check_choice, check_positive
from cmixup.methods.mix import Lam, Mix
from cmixup.mixing import Beta
from cmixup.optim import Adam
from cmixup.order import Order
from cmixup.pairing.neighbours import Neighbours
from cmixup.seeding import Streams, torch_seed

WIDTH, WINDOW = 100, 20


@dataclass(frozen=True)
class Search:
    """How the policy is learned; see `mixrl`."""

    outer: int = 200
    n_in: int = 50
    n_policy: int = 2000
    inner_batch: int = 256
    inner_lr: float = 0.01
    policy_lr: float = 0.01
    entropy: float = 0.01

    def __post_init__(self) -> None:
        for name, least in (("outer", 0), ("n_in", 1), ("n_policy", 1), ("inner_batch", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number, {least} or more, got {value!r}")
        check_positive("inner_lr", self.inner_lr)
        check_positive("policy_lr", self.policy_lr)
        if not 0 <= as_number("entropy", self.entropy) < float("inf"):
            raise InputError(f"entropy must be a finite number, 0 or more, got {self.entropy!r}")


class MixRL(Mix):
    """`Mix` with `Neighbours` whose probabilities are learned before training.

    Args:
        pairing: the neighbours.
        lam, layer: see `Mix`.
        how: of the search.
        final: train with k_i drawn from the policy ("sample") or its most probable option ("argmax").

    Attributes:
        history: validation loss of each step of the search.
    """

    def __init__(self, pairing: Neighbours, lam: Lam, layer: str, how: Search, final: str = "sample"):
        super().__init__(pairing, lam, layer)
        self.neighbours, self.how, self.final = pairing, how, check_choice("final", final, ("sample", "argmax"))
        self.history: list[float] = []

    def search(self, train: Split, val: Split, model: nn.Module, streams: Streams) -> None:
        """Learn the policy: every step trains `model`, from the weights it has now, on pairs drawn from it."""
        who, how, rng = self.neighbours, self.how, streams.mixing
        if how.outer and len(who.options) > 1:
            with torch_seed(int(rng.integers(2**62))):
                policy = make_policy(who.features.shape[1], len(who.options))
                optimizer = Adam(policy.parameters(), how.policy_lr)
                inner, start = copy.deepcopy(model).cpu(), copy.deepcopy(model).cpu().state_dict()
                rewards: list[float] = []
                for _ in range(how.outer):
                    rows = rng.permutation(len(train))[: how.n_policy]
                    log_pi = policy(who.features[torch.from_numpy(rows)]).log_softmax(dim=1)
                    who.probabilities[rows] = log_pi.detach().double().exp().numpy()
                    chosen = who.choose(rows, rng)
                    inner.load_state_dict(start)
                    self._train(inner, train, (rows, who.partners(rows, chosen, rng)), rng)
                    score = self._score(inner, val)
                    rewards.append(float(np.mean(self.history[-WINDOW:] or [score])) - score)
                    self.history.append(score)
                    reward = rewards[-1] / max(float(np.std(rewards)), 1e-12)
                    loss = policy_loss(log_pi, torch.from_numpy(chosen), reward, how.entropy)
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
                with torch.no_grad():
                    who.probabilities = policy(who.features).double().softmax(dim=1).numpy()
        if self.final == "argmax":
            who.probabilities = np.eye(len(who.options))[who.probabilities.argmax(axis=1)]

    def _train(
        self, inner: nn.Module, train: Split, pairs: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
    ) -> None:
        """Train `inner` for `n_in` steps on batches of the rows and partners `pairs`."""
        count, steps = len(pairs[0]), self.how.n_in
        size = min(self.how.inner_batch, count)
        places = np.stack([rng.choice(count, size, replace=False, shuffle=False) for _ in range(steps)])
        lam = self.lam.draw(Order(places.ravel(), np.full(steps, size)), rng).reshape(places.shape)
        optimizer = Adam(inner.parameters(), self.how.inner_lr)
        inner.train()
        for place, weights in zip(places, torch.from_numpy(lam), strict=True):
            first, second = (_rows(train, some[place]) for some in pairs)
            batch = Batch(first.x, first.y, first.domain, second, {"lam": weights})
            optimizer.zero_grad()
            self.loss(inner, batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _score(self, inner: nn.Module, val: Split) -> float:
        """Return the mean squared error on the validation split."""
        inner.eval()
        with torch.no_grad():
            parts = np.split(np.arange(len(val)), range(self.how.inner_batch, len(val), self.how.inner_batch))
            rows = (_rows(val, part) for part in parts)
            total = sum(float((self.predict(inner, some.x) - some.y).double().square().sum()) for some in rows)
        if not np.isfinite(total):
            raise InputError(f"the search of MixRL diverged, with inner_lr {self.how.inner_lr!r}")
        return total / val.y.numel()


def make_policy(width: int, n_options: int) -> nn.Sequential:
    """Return the network from `(B, width)` features to `(B, n_options)` logits: 5 layers of width 100, ReLU."""
    widths = [width, WIDTH, WIDTH, WIDTH, WIDTH]
    hidden = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, n_options))


def policy_loss(log_pi: Tensor, chosen: Tensor, reward: float, entropy: float) -> Tensor:
    """Return what REINFORCE minimises: -(R mean log pi(k_i|i) + entropy bonus), a scalar.

    Args:
        log_pi: `(B, n_options)` log probabilities.
        chosen: `(B,)` int64, the options drawn.
        reward: standardised reward.
        entropy: weight of the mean entropy.
    """
    picked = log_pi.gather(1, chosen[:, None]).mean()
    return -(reward * picked - entropy * (log_pi.exp() * log_pi).sum(dim=1).mean())


def _rows(split: Split, rows: np.ndarray) -> Batch:
    index = torch.from_numpy(rows)
    return Batch(split.x[index], split.y[index], split.domain[index])


def mixrl(
    alpha: float,
    lam_per: str = "example",
    layer: str = "input",
    *,
    m: int = 5,
    options: list | None = None,
    distance: str = "x",
    final: str = "sample",
    outer: int = 200,
    n_in: int = 50,
    n_policy: int = 2000,
    inner_batch: int = 256,
    inner_lr: float = 0.01,
    policy_lr: float = 0.01,
    entropy: float = 0.01,
) -> MixRL:
    """Mix with one of the k_i nearest rows, k_i drawn from a policy learned on the validation split.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
        m: the options for k are 0, 1, 2, 4, ..., 2^m.
        options: the options themselves, instead of `m`; 0 is not to mix.
        distance: neighbours in standardised "x", "y" or "both".
        final: draw k_i from the policy ("sample") or take its most probable option ("argmax").
        outer: steps of the search.
        n_in: steps of each predictor inside the search.
        n_policy: examples of a step of the search, at most all.
        inner_batch: batch size of those predictors.
        inner_lr: their learning rate (Adam).
        policy_lr: learning rate of the policy (Adam).
        entropy: weight of the entropy bonus.
    """
    how = Search(outer, n_in, n_policy, inner_batch, inner_lr, policy_lr, entropy)
    if isinstance(m, bool) or m < 0:
        raise InputError(f"m must be a whole number, 0 or more, got {m!r}")
    pairing = Neighbours([0, *(2**i for i in range(m + 1))] if options is None else list(options), distance)
    return MixRL(pairing, Beta(alpha, lam_per), layer, how, final)
