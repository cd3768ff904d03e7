"""MixRL / RegMix (Hwang and Whang 2021, arXiv 2106.03374); no public code found.

A reconstruction: for every example a policy network says how many nearest neighbours it may be mixed with,
learned by REINFORCE from the validation loss of predictors trained for a few steps, in the way of DVRL (google-research
dvrl/dvrl.py). Differences from DVRL: the baseline is a moving average, the reward is divided by its running standard
deviation, and an entropy bonus replaces the hinge on the selection probability. The network sees standardised inputs
and labels, not features of another model. The validation split serves the search and the choice of the checkpoint:
expect optimism there. The test split is never touched.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch, read_rows
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_choice, check_count, check_nonnegative, check_positive
from cmixup.methods.mix import Mix
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Beta, Lam
from cmixup.optim import Adam
from cmixup.order import EpochBatches
from cmixup.pairing.neighbours import Neighbours
from cmixup.seeding import Streams, torch_seed

POLICY_WIDTH = 100  # of the policy's hidden layers
BASELINE_STEPS = 20  # of the search, whose mean validation loss is the reward's baseline


class MixRL(Mix):
    """`Mix` with `Neighbours` whose probabilities are learned before training.

    Args:
        pairing: the neighbours.
        lam, layer, mixing: see `Mix`.
        final: train with k_i drawn from the policy ("sample") or its most probable option ("argmax").
        outer: steps of the search; 0 leaves all options equally likely.
        n_in: steps of each predictor inside the search.
        n_policy: examples of a step of the search, at most all.
        inner_batch: batch size of those predictors.
        inner_lr: their learning rate (Adam).
        policy_lr: learning rate of the policy (Adam).
        entropy: weight of the entropy bonus.

    Attributes:
        history: validation loss of each step of the search.
    """

    pairing: Neighbours

    def __init__(
        self,
        pairing: Neighbours,
        lam: Lam,
        layer: str = "input",
        mixing: Mixing | None = None,
        *,
        final: str = "sample",
        outer: int = 200,
        n_in: int = 50,
        n_policy: int = 2000,
        inner_batch: int = 256,
        inner_lr: float = 0.01,
        policy_lr: float = 0.01,
        entropy: float = 0.01,
    ):
        super().__init__(pairing, lam, layer, mixing)
        self.final = check_choice("final", final, ("sample", "argmax"))
        self.outer, self.n_in = check_count("outer", outer), check_count("n_in", n_in, 1)
        self.n_policy = check_count("n_policy", n_policy, 1)
        self.inner_batch = check_count("inner_batch", inner_batch, 1)
        self.inner_lr, self.policy_lr = check_positive("inner_lr", inner_lr), check_positive("policy_lr", policy_lr)
        self.entropy = check_nonnegative("entropy", entropy)
        self.history: list[float] = []

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        """List the neighbours and learn the policy; a run that goes on loads what was learned."""
        super().fit(data, model, streams)
        if streams is None:
            return
        if self.outer and len(self.pairing.options) > 1:
            self._search(data, model, streams.mixing)
        if self.final == "argmax":
            best = self.pairing.probabilities.argmax(axis=1)
            self.pairing.probabilities = np.eye(len(self.pairing.options))[best]

    def _search(self, data: RegressionData, model: nn.Module, rng: np.random.Generator) -> None:
        """Learn the policy: a step trains a copy of `model` on pairs drawn from it and scores that on validation."""
        who = self.pairing
        with torch_seed(int(rng.integers(2**62))):
            policy = make_policy(who.features.shape[1], len(who.options))
            optimizer = Adam(policy.parameters(), self.policy_lr)
            inner, start = copy.deepcopy(model).cpu(), copy.deepcopy(model).cpu().state_dict()
            rewards: list[float] = []
            for _ in range(self.outer):
                rows = rng.permutation(len(data.train))[: self.n_policy]
                log_pi = policy(who.features[torch.from_numpy(rows)]).log_softmax(dim=1)
                who.probabilities[rows] = log_pi.detach().double().exp().numpy()
                chosen = who.choose(rows, rng)
                inner.load_state_dict(start)
                self._train(inner, data.train, (rows, who.partners(rows, chosen, rng)), rng)
                score = self._score(inner, data.val)
                rewards.append(float(np.mean(self.history[-BASELINE_STEPS:] or [score])) - score)
                self.history.append(score)
                reward = rewards[-1] / max(float(np.std(rewards)), 1e-12)
                loss = policy_loss(log_pi, torch.from_numpy(chosen), reward, self.entropy)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            with torch.no_grad():
                who.probabilities = policy(who.features).double().softmax(dim=1).numpy()

    def _train(
        self, inner: nn.Module, train: Split, pairs: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
    ) -> None:
        """Train `inner` for `n_in` steps on batches of the rows and partners `pairs`."""
        count = len(pairs[0])
        size = min(self.inner_batch, count)
        places = np.concatenate([rng.choice(count, size, replace=False, shuffle=False) for _ in range(self.n_in)])
        order = EpochBatches(pairs[0][places], np.full(self.n_in, size))
        draws = {"lam": self.lam.draw(order.sizes, rng), **self.mixing.draw(order, rng)}
        optimizer = Adam(inner.parameters(), self.inner_lr)
        inner.train()
        for start in range(0, len(places), size):
            step = slice(start, start + size)
            first, second = (read_rows(train, rows[places[step]]) for rows in pairs)
            drawn = {name: torch.from_numpy(value[step]) for name, value in draws.items()}
            optimizer.zero_grad()
            self.loss(inner, Batch(first.x, first.y, first.domain, second, drawn)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _score(self, inner: nn.Module, val: Split) -> float:
        """Return the mean squared error on the validation split."""
        inner.eval()
        predict = self.predictors()[""]
        with torch.no_grad():
            parts = np.split(np.arange(len(val)), range(self.inner_batch, len(val), self.inner_batch))
            rows = (read_rows(val, part) for part in parts)
            total = sum(float((predict(inner, some.x) - some.y).double().square().sum()) for some in rows)
        if not np.isfinite(total):
            raise InputError(f"the search of MixRL diverged, with inner_lr {self.inner_lr!r}")
        return total / val.y.numel()


def make_policy(width: int, n_options: int) -> nn.Sequential:
    """Return the network from `(B, width)` features to `(B, n_options)` logits: 5 layers of width 100, ReLU."""
    widths = [width, *[POLICY_WIDTH] * 4]
    hidden = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(POLICY_WIDTH, n_options))


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


def mixrl(
    alpha: float,
    lam_per: str = "example",
    layer: str = "input",
    *,
    m: int = 5,
    options: list | None = None,
    distance: str = "x",
    final: str = "sample",
    **search: float,
) -> MixRL:
    """Return MixRL: each row is mixed with one of its k_i nearest rows, k_i drawn from a policy learned on validation.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
        m, options, distance: see `Neighbours`.
        final: see `MixRL`.
        **search: outer, n_in, n_policy, inner_batch, inner_lr, policy_lr, entropy; see `MixRL`.
    """
    pairing = Neighbours(m, options, distance)
    return MixRL(pairing, Beta(alpha, lam_per), layer, final=final, **search)  # type: ignore[arg-type]
