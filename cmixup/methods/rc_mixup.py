"""RC-Mixup (Hwang, Kim and Whang 2024, KDD, arXiv 2405.17938): C-Mixup on the rows that look clean, for noisy labels.

After a warm-up with C-Mixup on all rows, training goes on from the weights that were best on validation, with a fresh
optimiser; the checkpoint is then chosen among the epochs that follow. Every one of these drops the rows with the
largest losses (iterative trimmed loss minimisation) and mixes the others, whose label kernel is restricted to them.
Every few epochs each bandwidth of a list is tried for some epochs from copies of model and optimiser. Training goes on
from where the trial with the best validation score ended, and its epochs count as epochs of the run.

Written from the paper; the authors' repository (Seong-HyeonHwang/RC-Mixup_KDD2024) has no licence, and no code of it is
here. Trials begin from the same random numbers as the epochs that follow them, so these repeat the trial that was
chosen, where the repository keeps its weights: the same run for the price of these epochs.

Differences: row losses and trials are computed on the model in evaluation mode, so that dropout does not choose rows;
`epochs` counts the warm-up's, too; `drop_last` says whether the last partial batch is left out, as the repository does;
trials read the fixed view of inputs that have several. With a tie the first bandwidth is taken, there the last one.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_count
from cmixup.methods.mix import Mix
from cmixup.metrics import metric_of
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.pairing.label import LabelDistance
from cmixup.sampling.bandwidth import parse_bandwidth
from cmixup.seeding import Streams
from cmixup.training.batch import DRAWN_ROWS, EpochBatches
from cmixup.training.losses import SQUARED
from cmixup.training.method import squared_errors
from cmixup.training.model_stack import KeepsState
from cmixup.training.training import Training


class RCMixup(KeepsState, Mix):
    """`Mix` with label-distance partners on a subset of the rows that is chosen anew every epoch.

    Args:
        pairing: C-Mixup's, with the bandwidth of the warm-up.
        lam, layer, mixing: see `Mix`.
        noise: share of the training rows that is dropped, at least 0 and below 1.
        warm_up: epochs of C-Mixup on all rows.
        bandwidths: tried after the warm-up; None or one of them is kept for good. Each as for `LabelDistance`.
        every: epochs between two trials of the bandwidths.
        trial_epochs: epochs that each bandwidth is tried for, at most `every`.

    Attributes:
        kept: `(n,)` int64 rows of the current epoch, ascending.
    """

    stackable = False
    losses = (SQUARED.name,)
    kept_state = ("_epoch", "kept")
    pairing: LabelDistance

    def __init__(
        self, pairing: LabelDistance, lam: Lam, layer: str = "input", mixing: Mixing | None = None, *,
        noise: float = 0.2, warm_up: int = 10, bandwidths: list | None = None, every: int = 10, trial_epochs: int = 1,
    ):  # fmt: skip
        super().__init__(pairing, lam, layer, mixing)
        if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 0 <= noise < 1:
            raise InputError(f"noise must be a number, at least 0 and below 1, got {noise!r}")
        self.noise, self.warm_up = noise, check_count("warm_up", warm_up)
        self.every = check_count("every", every, 1)
        self.trial_epochs = check_count("trial_epochs", trial_epochs, 1, most=self.every)
        self.selects_from = self.warm_up + 1
        self.bandwidths = list(bandwidths or [])
        for bandwidth in self.bandwidths:
            parse_bandwidth(bandwidth)  # refuses a bad value before any data is read

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        self._labels, self._metric, self._epoch = data.train.y, metric_of(data.selection), 0
        self.kept = np.arange(len(data.train))

    def begin(self, training: Training) -> None:
        super().begin(training)
        self._training = training

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        """Return an epoch of the rows that look clean to the current weights; try the bandwidths if it is time to."""
        self._epoch += 1
        since = self._epoch - self.warm_up - 1  # epochs since the warm-up
        if since < 0:
            return super().order(train, batch_size, streams, **batching)
        if since == 0:
            self._training.stack.load_best()
            self._training.stack.optimizer.reset()
            if len(self.bandwidths) == 1:
                self.pairing.bandwidth = self.bandwidths[0]
        if len(self.bandwidths) > 1 and since % self.every == 0:
            self._try_bandwidths(batch_size, streams, batching)
        return self._clean_epoch(batch_size, streams, batching)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        places = EpochBatches(np.searchsorted(self.kept, order.index), order.sizes)
        draws = super().draw(places, streams)
        return draws | {name: self.kept[draws[name]] for name in DRAWN_ROWS.values() if name in draws}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load the result of `get_extra_state`; the pairing loads its bandwidth next."""
        super().set_extra_state(state)
        self._keep(self.kept)

    def _keep(self, rows: np.ndarray) -> None:
        """Take these rows for the next epoch and restrict the label kernel to them."""
        self.kept = rows
        self.pairing.fit_labels(self._labels[rows].numpy())

    def _clean_epoch(self, batch_size: int, streams: Streams, batching: Mapping[str, bool]) -> EpochBatches:
        """Drop the rows with the largest losses and return an epoch of the others."""
        labels = self._training.stack.labels
        predicted = self._training.predict("train")
        errors = squared_errors(labels.scale(predicted), labels.scale(self._labels.to(predicted.device))).cpu().numpy()
        n_kept = len(errors) - int(self.noise * len(errors))
        self._keep(np.sort(np.argsort(errors, kind="stable")[:n_kept]))
        order = super().order(self.kept, batch_size, streams, **batching)  # type: ignore[arg-type]  # reads the length
        return EpochBatches(self.kept[order.index], order.sizes)

    def _try_bandwidths(self, batch_size: int, streams: Streams, batching: Mapping[str, bool]) -> None:
        """Choose the bandwidth that trains best; weights, optimisers and random numbers are as before afterwards."""
        training, stack = self._training, self._training.stack
        stack_state, mixing_state = copy.deepcopy((stack.state_dict(), self.mixing.state_dict()))
        random_states = streams.state_dict(), training.random.state_dict()
        best, best_score = self.pairing.bandwidth, torch.tensor([self._metric.worst], dtype=torch.float64)
        for bandwidth in self.bandwidths:
            self.pairing.bandwidth = bandwidth
            for _ in range(self.trial_epochs):
                order = self._clean_epoch(batch_size, streams, batching)
                training.run_epoch([order], [self.draw(order, streams)])
                score = training.score("val", training.predict("val"))
                if bool(self._metric.better(score, best_score)):
                    best, best_score = bandwidth, score
            stack.load_state_dict(stack_state)
            self.mixing.load_state_dict(mixing_state)
            streams.load_state_dict(random_states[0])
            training.random.load_state_dict(random_states[1])
        self.pairing.bandwidth = best
