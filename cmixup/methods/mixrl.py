"""MixRL / RegMix (Hwang and Whang 2021, arXiv 2106.03374); no public code found.

A reconstruction: for every example a policy network says how many nearest neighbours it may be mixed with,
learned by REINFORCE from the validation loss of predictors trained for a few steps, in the way of DVRL (google-research
dvrl/dvrl.py). Differences from DVRL: the baseline is a moving average, the reward is divided by its running standard
deviation, and an entropy bonus replaces the hinge on the selection probability. The network sees standardised inputs
and labels, not features of another model. The validation split serves the search and the choice of the checkpoint:
expect optimism there. The test split is never touched. The sizes of the search are ours: results/findings.md has
longer ones.

One search serves all runs of a stack: their policies are one stack and their predictors another, each with one
optimiser. Every run draws from its own stream, with the same draws as alone.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cmixup.backbone import mlp
from cmixup.errors import InputError, check_choice, check_count, check_nonnegative, check_positive
from cmixup.methods.mix import Mix
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.pairing.neighbours import Neighbours
from cmixup.seeding import Draws, may_draw
from cmixup.training.batch import EpochBatches
from cmixup.training.losses import SQUARED
from cmixup.training.model_stack import stack_modules
from cmixup.training.optim import Adam, descend
from cmixup.training.training import Training

POLICY_WIDTH = 100  # of the policy's hidden layers
BASELINE_STEPS = 20  # of the search, whose mean validation loss is the reward's baseline


@dataclass(frozen=True)
class Search:
    """How long MixRL searches, and how it trains the predictors and the policy of the search."""

    outer: int = 25  # steps of the search; 0 leaves all options equally likely
    n_in: int = 50  # steps of each predictor inside the search
    n_policy: int = 2000  # examples of a step of the search, at most all
    inner_batch: int = 256  # batch size of those predictors
    inner_lr: float = 0.01  # their learning rate (Adam)
    policy_lr: float = 0.01  # learning rate of the policy (Adam)
    entropy: float = 0.01  # weight of the entropy bonus

    def __post_init__(self) -> None:
        check_count("outer", self.outer)
        for name in ("n_in", "n_policy", "inner_batch"):
            check_count(name, getattr(self, name), 1)
        for name in ("inner_lr", "policy_lr"):
            check_positive(name, getattr(self, name))
        check_nonnegative("entropy", self.entropy)


class MixRL(Mix):
    """`Mix` with `Neighbours` whose probabilities are learned before training.

    Args:
        pairing: the neighbours.
        lam, layer, mixing: see `Mix`.
        final: train with k_i drawn from the policy ("sample") or its most probable option ("argmax").
        search: how the policy is learned.
    """

    pairing: Neighbours

    losses = (SQUARED.name,)

    def __init__(
        self, pairing: Neighbours, lam: Lam, layer: str = "input", mixing: Mixing | None = None, *,
        final: str = "sample", search: Search | None = None,
    ):  # fmt: skip
        super().__init__(pairing, lam, layer, mixing)
        self.final = check_choice("final", final, ("sample", "argmax"))
        self.search = search or Search()

    def begin(self, training: Training) -> None:
        super().begin(training)
        if training.resumed:
            return
        if self.search.outer and len(self.pairing.options) > 1:
            PolicySearch(self.search, self, training).run()
        if self.final == "argmax":
            for method in training.methods:
                best = method.pairing.probabilities.argmax(axis=1)
                method.pairing.probabilities = np.eye(len(method.pairing.options))[best]


class PolicySearch:
    """A search for all runs of a stack; everything is drawn from the streams `mixing`.

    The loss of `method`, the stack of the runs' methods, trains the predictors, which start as copies of the freshly
    initialised models of `training`.
    """

    def __init__(self, options: Search, method: Mix, training: Training):
        self.options, self.method, self.training, self.device = options, method, training, training.stack.device
        self.methods: Sequence[Mix] = training.methods
        self.pairings: list[Neighbours] = [run_method.pairing for run_method in training.methods]
        self.rngs = [streams.mixing for streams in training.streams]
        self.features = self._tensor([pairing.features.numpy() for pairing in self.pairings])
        self.predictor = copy.deepcopy(training.stack.model)
        self.start = copy.deepcopy(self.predictor.state_dict())
        self.optimizer = Adam(self.predictor.parameters(), options.inner_lr)

    def run(self) -> None:
        """Learn the probabilities of every run's pairing.

        A step trains freshly initialised predictors on pairs drawn from the policies and scores them on validation.
        """
        n_rows = self.features.shape[-2]
        losses: list[list[float]] = [[] for _ in self.rngs]
        rewards: list[list[float]] = [[] for _ in self.rngs]
        seeds = [int(rng.integers(2**62)) for rng in self.rngs]
        policies, generators = [], [Draws(seed) for seed in seeds]
        for generator in generators:
            with generator.used():
                policies.append(mlp(self.features.shape[-1], *[POLICY_WIDTH] * 4, len(self.pairings[0].options)))
        policy = stack_modules(policies).to(self.device)
        optimizer = Adam(policy.parameters(), self.options.policy_lr)
        # The generator that made the first run's policy goes on to the dropout of the predictors, if they have any.
        with generators[0].used(everywhere=may_draw(self.predictor)):
            for step in range(1, self.options.outer + 1):
                rows = [rng.permutation(n_rows)[: self.options.n_policy] for rng in self.rngs]
                features = self.features.take_along_dim(self._tensor(rows).unsqueeze(-1), dim=-2)
                log_pi = policy(features).log_softmax(dim=-1)
                chosen, orders, draws = self._draw(rows, log_pi.detach())
                self.predictor.load_state_dict(self.start)
                self.predictor.train()
                self.optimizer.reset()
                for batch in self.training.batches(orders, draws):
                    descend(self.method.loss(self.predictor, batch), self.optimizer)
                for place, loss in enumerate(self.score()):
                    rewards[place].append(float(np.mean(losses[place][-BASELINE_STEPS:] or [loss])) - loss)
                    losses[place].append(loss)
                standardised = [history[-1] / max(float(np.std(history)), 1e-12) for history in rewards]
                reward = torch.tensor(standardised, device=self.device).reshape(log_pi.shape[:-2])
                descend(policy_loss(log_pi, self._tensor(chosen), reward, self.options.entropy), optimizer)
                self.training.on_epoch(0, [{"search_percent": 100 * step / self.options.outer}])
            with torch.no_grad():
                probabilities = self._by_run(policy(self.features).double().softmax(dim=-1))
        for pairing, pi in zip(self.pairings, probabilities, strict=True):
            pairing.probabilities = pi

    def score(self) -> list[float]:
        """Return the mean squared error of each run's predictor on its validation split, in the loss's units."""
        predict, y = self.method.predictors()[""], self.training.data[0].val.y
        self.predictor.eval()
        total = torch.zeros(len(self.rngs), dtype=torch.float64, device=self.device)
        with torch.no_grad():
            for part in torch.split(torch.arange(len(y)), self.options.inner_batch):
                rows = self.training.read("val", part)
                square = (predict(self.predictor, rows.x) - rows.y).double().square()
                total += square.masked_fill(rows.y.isnan(), 0.0).sum(dim=(-2, -1))
        if not bool(torch.isfinite(total).all()):
            raise InputError(f"the search of MixRL diverged, with inner_lr {self.options.inner_lr!r}")
        counts = [int((~data.val.y.isnan()).sum()) for data in self.training.data]
        return [error_sum / count for error_sum, count in zip(total.tolist(), counts, strict=True)]

    def _draw(
        self, rows: Sequence[np.ndarray], log_pi: Tensor
    ) -> tuple[list[np.ndarray], list[EpochBatches], list[dict[str, np.ndarray]]]:
        """Return for each run the options that its policy draws for `rows`, and its predictor's batches and draws."""
        chosen, orders, draws = list[np.ndarray](), list[EpochBatches](), list[dict[str, np.ndarray]]()
        runs = zip(self.methods, self.pairings, self.rngs, rows, self._by_run(log_pi.double().exp()), strict=True)
        for method, pairing, rng, examples, pi in runs:
            pairing.probabilities[examples] = pi
            chosen.append(pairing.choose(examples, rng))
            partners = pairing.partners(examples, chosen[-1], rng)
            size, steps = min(self.options.inner_batch, len(examples)), self.options.n_in
            batches = [rng.choice(len(examples), size, replace=False, shuffle=False) for _ in range(steps)]
            places = np.concatenate(batches)
            orders.append(order := EpochBatches(examples[places], np.full(steps, size)))
            lam = method.lam.draw(order.sizes, rng)
            other_draws = method.mixing.draw(order, rng) | method.draw_layer(order, rng)
            draws.append({"partner": partners[places], "lam": lam, **other_draws})
        return chosen, orders, draws

    def _tensor(self, arrays: Sequence[np.ndarray]) -> Tensor:
        """Return one array a run as one tensor on the device, with an axis of runs where there are several."""
        return torch.from_numpy(arrays[0] if len(arrays) == 1 else np.stack(arrays)).to(self.device)

    def _by_run(self, values: Tensor) -> list[np.ndarray]:
        """Return the part `(B, n)` of each run."""
        return list(values.reshape(len(self.rngs), *values.shape[-2:]).cpu().numpy())


def policy_loss(log_pi: Tensor, chosen: Tensor, reward: Tensor, entropy: float) -> Tensor:
    """Return the loss of REINFORCE, `-(R mean log pi(k_i|i) + entropy bonus)`: `(...)`, one value a policy.

    It takes log probabilities `(..., B, n_options)`, the options drawn `(..., B)` int64, the standardised reward R
    `(...)` and the weight of the mean entropy.
    """
    log_chosen = log_pi.gather(-1, chosen.unsqueeze(-1)).squeeze(-1).mean(dim=-1)
    return -(reward * log_chosen - entropy * (log_pi.exp() * log_pi).sum(dim=-1).mean(dim=-1))
