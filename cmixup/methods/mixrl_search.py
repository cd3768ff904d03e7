"""The search of MixRL: REINFORCE learns from the validation loss how many neighbours each row may be mixed with.

One search serves all runs of a stack: their policies are one stack and their predictors another, each with one
optimiser. Every run draws from its own stream, and draws what it would draw alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import StackLinear
from cmixup.batch import Batch
from cmixup.data import RegressionData, Split, Together
from cmixup.errors import InputError, check_count, check_nonnegative, check_positive
from cmixup.label_scaling import LabelScaling
from cmixup.methods.base import SearchCallback
from cmixup.methods.mix import Mix
from cmixup.model_stack import ModelStack, stack_modules
from cmixup.optim import Adam, descend
from cmixup.order import EpochBatches
from cmixup.pairing.neighbours import Neighbours
from cmixup.seeding import torch_seed

POLICY_WIDTH = 100  # of the policy's hidden layers
BASELINE_STEPS = 20  # of the search, whose mean validation loss is the reward's baseline


@dataclass(frozen=True)
class Search:
    """How long MixRL searches, and how it trains the predictors and the policy of the search.

    Args:
        outer: steps of the search; 0 leaves all options equally likely.
        n_in: steps of each predictor inside the search.
        n_policy: examples of a step of the search, at most all.
        inner_batch: batch size of those predictors.
        inner_lr: their learning rate (Adam).
        policy_lr: learning rate of the policy (Adam).
        entropy: weight of the entropy bonus.
    """

    outer: int = 25
    n_in: int = 50
    n_policy: int = 2000
    inner_batch: int = 256
    inner_lr: float = 0.01
    policy_lr: float = 0.01
    entropy: float = 0.01

    def __post_init__(self) -> None:
        check_count("outer", self.outer)
        for name in ("n_in", "n_policy", "inner_batch"):
            check_count(name, getattr(self, name), 1)
        check_positive("inner_lr", self.inner_lr)
        check_positive("policy_lr", self.policy_lr)
        check_nonnegative("entropy", self.entropy)


@dataclass(frozen=True)
class SearchRun:
    """One run of a search.

    Attributes:
        data: its rows.
        method: its own fitted method, which draws lambda and what the mixing needs.
        pairing: the method's, whose probabilities the search changes.
        rng: the stream that everything is drawn from.
    """

    data: RegressionData
    method: Mix
    pairing: Neighbours
    rng: np.random.Generator


class PolicySearch:
    """A search for all runs of a stack.

    Tensors of several runs have a leading axis of E, those of a single run have none, as everywhere in a stack.

    Args:
        options: how to search.
        method: the stack of the runs' methods, whose loss trains the predictors.
        stack: the freshly initialised models; predictors start as copies of them.
        runs: the runs, in the order of the stack.

    Raises:
        InputError: runs whose splits differ in shape.
    """

    def __init__(self, options: Search, method: Mix, stack: ModelStack, runs: Sequence[SearchRun]):
        self.options, self.method, self.runs, self.device = options, method, runs, stack.device
        self.train = _Rows([run.data.train for run in runs], self.device, stack.labels)
        self.val = _Rows([run.data.val for run in runs], self.device, stack.labels)
        self.features = _together([run.pairing.features for run in runs]).to(self.device)
        self.predictor = copy.deepcopy(stack.model)
        self.start = copy.deepcopy(stack.model.state_dict())
        self.optimizer = Adam(self.predictor.parameters(), options.inner_lr)

    def run(self, on_step: SearchCallback | None = None) -> list[list[float]]:
        """Learn the probabilities of every run's pairing; return each run's validation loss after every step.

        A step trains freshly initialised predictors on pairs drawn from the policies and scores them on validation.

        Args:
            on_step: called after each step with its number (from 1), and how many there are.

        Raises:
            InputError: a validation loss that is not finite.
        """
        losses: list[list[float]] = [[] for _ in self.runs]
        rewards: list[list[float]] = [[] for _ in self.runs]
        seeds = [int(run.rng.integers(2**62)) for run in self.runs]
        # The generator that makes the first run's policy goes on to the dropout of the predictors, if they have any.
        with torch_seed(seeds[0], self.device):
            policies = [self._make_policy()]
            for seed in seeds[1:]:
                with torch_seed(seed):
                    policies.append(self._make_policy())
            policy = stack_modules(policies).to(self.device)
            optimizer = Adam(policy.parameters(), self.options.policy_lr)
            for step in range(1, self.options.outer + 1):
                rows = [run.rng.permutation(self.train.count)[: self.options.n_policy] for run in self.runs]
                features = self.features.take_along_dim(self._tensor(rows).unsqueeze(-1), dim=-2)
                log_pi = policy(features).log_softmax(dim=-1)
                drawn = self._draw(rows, log_pi.detach())
                self._train(drawn)
                for place, loss in enumerate(self.score()):
                    rewards[place].append(float(np.mean(losses[place][-BASELINE_STEPS:] or [loss])) - loss)
                    losses[place].append(loss)
                standardised = [own[-1] / max(float(np.std(own)), 1e-12) for own in rewards]
                reward = torch.tensor(standardised, device=self.device).reshape(log_pi.shape[:-2])
                chosen = self._tensor([own.chosen for own in drawn])
                descend(policy_loss(log_pi, chosen, reward, self.options.entropy), optimizer)
                if on_step:
                    on_step(step, self.options.outer)
            with torch.no_grad():
                learned = self._each(policy(self.features).double().softmax(dim=-1))
        for run, pi in zip(self.runs, learned, strict=True):
            run.pairing.probabilities = pi
        return losses

    def score(self) -> list[float]:
        """Return the mean squared error of each run's predictor on its validation split, in the loss's units."""
        predict = self.method.predictors()[""]
        self.predictor.eval()
        total = torch.zeros(len(self.runs), dtype=torch.float64, device=self.device)
        with torch.no_grad():
            for part in torch.split(torch.arange(self.val.count), self.options.inner_batch):
                rows = self.val.read(_together([part] * len(self.runs)))
                total += (predict(self.predictor, rows.x) - rows.y).double().square().sum(dim=(-2, -1))
        if not bool(torch.isfinite(total).all()):
            raise InputError(f"the search of MixRL diverged, with inner_lr {self.options.inner_lr!r}")
        return (total / self.val.n_labels).tolist()

    def _make_policy(self) -> nn.Sequential:
        return make_policy(self.features.shape[-1], len(self.runs[0].pairing.options))

    def _draw(self, rows: Sequence[np.ndarray], log_pi: Tensor) -> list[_Drawn]:
        """Return the draws of each run for the training of its predictor, from the probabilities of its policy."""
        found = []
        for run, own, pi in zip(self.runs, rows, self._each(log_pi.double().exp()), strict=True):
            run.pairing.probabilities[own] = pi
            chosen = run.pairing.choose(own, run.rng)
            partners = run.pairing.partners(own, chosen, run.rng)
            size = min(self.options.inner_batch, len(own))
            steps = range(self.options.n_in)
            places = np.concatenate([run.rng.choice(len(own), size, replace=False, shuffle=False) for _ in steps])
            order = EpochBatches(own[places], np.full(len(steps), size))
            draws = {"lam": run.method.lam.draw(order.sizes, run.rng), **run.method.mixing.draw(order, run.rng)}
            found.append(_Drawn(chosen, order.index, partners[places], draws))
        return found

    def _train(self, drawn: Sequence[_Drawn]) -> None:
        """Train the predictors for `n_in` steps, from their first weights."""
        self.predictor.load_state_dict(self.start)
        self.predictor.train()
        self.optimizer.reset()
        index, partner = self._by_step([own.index for own in drawn]), self._by_step([own.partner for own in drawn])
        draws = {name: self._by_step([own.draws[name] for own in drawn]) for name in drawn[0].draws}
        for step in range(self.options.n_in):
            first, second = self.train.read(index[step]), self.train.read(partner[step])
            batch = Batch(first.x, first.y, first.domain, second, {name: draws[name][step] for name in draws})
            descend(self.method.loss(self.predictor, batch), self.optimizer)

    def _by_step(self, arrays: Sequence[np.ndarray]) -> Tensor:
        """Return `(n_in, E, B, ...)` from what each run drew, `(n_in * B, ...)`; one run has no axis E."""
        steps = [array.reshape(self.options.n_in, -1, *array.shape[1:]) for array in arrays]
        return torch.from_numpy(steps[0] if len(steps) == 1 else np.stack(steps, axis=1)).to(self.device)

    def _tensor(self, arrays: Sequence[np.ndarray]) -> Tensor:
        """Return one array a run as one tensor on the device."""
        return _together([torch.from_numpy(array) for array in arrays]).to(self.device)

    def _each(self, values: Tensor) -> list[np.ndarray]:
        """Return the part `(B, n)` of each run."""
        return list(values.reshape(len(self.runs), *values.shape[-2:]).cpu().numpy())


@dataclass(frozen=True)
class _Drawn:
    """What one run drew for one step of the search.

    Attributes:
        chosen: the option of each of the step's examples.
        index, partner: `(n_in * B,)` rows of all batches of the predictor, and their partners.
        draws: lambda and what the mixing drew, aligned with them.
    """

    chosen: np.ndarray
    index: np.ndarray
    partner: np.ndarray
    draws: dict[str, np.ndarray]


class _Rows:
    """The rows of one split for every run; on the device where inputs are tensors, else read when asked for."""

    def __init__(self, splits: Sequence[Split], device: torch.device, labels: LabelScaling):
        shapes = {(len(split), tuple(split.y.shape), tuple(getattr(split.x, "shape", ()))) for split in splits}
        if len(shapes) > 1:
            raise InputError(f"all runs of a stack need splits of one shape, got {sorted(map(str, shapes))}")
        self.labels = labels
        self.device, self.count, self.n_labels = device, len(splits[0]), splits[0].y.numel()
        inputs = [split.x for split in splits if isinstance(split.x, Tensor)]
        self.home = device if inputs else torch.device("cpu")
        read = splits[0].x if len(splits) == 1 else Together([split.x for split in splits])
        self.x = torch.cat(inputs).to(self.home) if inputs else read
        self.y = torch.cat([split.y for split in splits]).to(self.home)
        self.domain = torch.cat([split.domain for split in splits]).to(self.home)
        # Rows of all runs lie one after another, so that one index reaches any of them.
        start = torch.arange(len(splits), device=self.home) * self.count
        self.start = start[:, None] if len(splits) > 1 else start

    def read(self, rows: Tensor) -> Batch:
        """Return the rows `(B,)`, or `(E, B)` for several runs."""
        flat = (rows.to(self.home) + self.start).reshape(-1)
        x = self.x.index_select(0, flat) if isinstance(self.x, Tensor) else self.x[flat]
        x, y, domain = (
            part.reshape(*rows.shape, *part.shape[1:]).to(self.device)
            for part in (x, self.y.index_select(0, flat), self.domain.index_select(0, flat))
        )
        return Batch(x, self.labels.scale(y), domain)


def make_policy(width: int, n_options: int) -> nn.Sequential:
    """Return the network from `(B, width)` features to `(B, n_options)` logits: 5 layers of width 100, ReLU."""
    widths = [width, *[POLICY_WIDTH] * 4]
    hidden = [part for a, b in pairwise(widths) for part in (StackLinear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, StackLinear(POLICY_WIDTH, n_options))


def policy_loss(log_pi: Tensor, chosen: Tensor, reward: Tensor, entropy: float) -> Tensor:
    """Return what REINFORCE minimises, `-(R mean log pi(k_i|i) + entropy bonus)`: `(...)`, one value a policy.

    Args:
        log_pi: `(..., B, n_options)` log probabilities.
        chosen: `(..., B)` int64, the options drawn.
        reward: `(...)`, the standardised reward.
        entropy: weight of the mean entropy.
    """
    picked = log_pi.gather(-1, chosen.unsqueeze(-1)).squeeze(-1).mean(dim=-1)
    return -(reward * picked - entropy * (log_pi.exp() * log_pi).sum(dim=-1).mean(dim=-1))


def _together(tensors: Sequence[Tensor]) -> Tensor:
    """Return one tensor a run as one: stacked along a new first axis, or as it is where there is one run."""
    return tensors[0] if len(tensors) == 1 else torch.stack(list(tensors))
