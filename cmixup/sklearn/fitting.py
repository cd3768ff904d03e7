"""Training the networks of `TabularRegressor`, those of all members and bandwidths that are tried, as one stack."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cmixup.data import RegressionData, Split
from cmixup.errors import MIN_BANDWIDTH, InputError, check_count
from cmixup.methods.erm import ERM
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.sampling.bandwidth import Bandwidth, parse_bandwidth, resolve_bandwidth
from cmixup.sampling.inputs import Floats
from cmixup.seeding import Streams, torch_seed
from cmixup.sklearn.effects import joined
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.network import MLP, Pieces
from cmixup.sklearn.options import Settings
from cmixup.sklearn.rows import Rows, WeightedLabels, epoch_batches
from cmixup.training.batch import EpochBatches
from cmixup.training.loader import BatchLoader
from cmixup.training.method import Method
from cmixup.training.model_stack import ModelStack, stack_modules

EVAL_BATCH = 4096
#: A network that has waited goes on with its best weights, and this share of its learning rate.
FALL = 0.3
#: The fewest and most epochs that such a network waits before the first fall.
WAITS = 2, 10
#: Without trees "validated" compares all bandwidths on the rows that every member holds out, up to so many rows.
CROSS_VALIDATED = 1000
#: Bandwidths that "validated" tries, in standard deviations of the labels: from no mixing (ERM) to any partner.
BANDWIDTHS = (0.0, 0.1, 0.3, 1.0, np.inf)


@dataclass(frozen=True)
class Trained:
    """The result of a network's training."""

    weights: dict[str, Tensor]  # state of the `MLP`, of the epoch that was chosen
    errors: Floats  # of the rows held out, by the loss of standardised labels; averaged over outputs
    best_epoch: int  # the epoch that was chosen, from 1; 0 if training diverged
    losses: list[float]  # the mean training loss of each epoch until it stopped


def bandwidths_for(bandwidth: Bandwidth, labels: Floats, unit: float, settings: Settings) -> list[float]:
    """Return the bandwidths to try, in units of standardised labels (n, d_y); a number asked for is in `unit`s."""
    if settings.validated:
        return list(BANDWIDTHS if len(labels) <= CROSS_VALIDATED and not settings.blend else BANDWIDTHS[::2])
    parsed = parse_bandwidth(bandwidth)
    if isinstance(parsed, float):
        return [max(parsed / unit, MIN_BANDWIDTH) if parsed > 0 else 0.0]
    return [parsed[1] if parsed[0] == "std" else resolve_bandwidth(labels, parsed)]


def fit_networks(
    rows: Rows, parts: Sequence[Part], bandwidths: Sequence[float], settings: Settings, **options: Any
) -> tuple[list[Trained], int, Floats]:
    """Return the networks of all members (M,), the place of the best bandwidth that is tried, and the losses of all.

    These are means (B,) over rows held out, NaN where none are. A few bandwidths are compared by the first member, all
    `BANDWIDTHS` by every one. `options` are further arguments of `Networks`.
    """
    n_compared = 1 if 1 < len(bandwidths) < len(BANDWIDTHS) else settings.members
    nets = [(bandwidth, member) for bandwidth in bandwidths for member in range(n_compared)]
    with warnings.catch_warnings():
        if len(bandwidths) > 1:  # some of these may mix nothing
            warnings.filterwarnings("ignore", "bandwidth .* leaves every row its own partner")
        networks = Networks(rows, parts, nets, settings, **options).train()
        errors = np.concatenate([network.errors for network in networks]).reshape(len(bandwidths), -1)
        weight = rows.weight[np.concatenate([part.held for part in parts[:n_compared]])]
        best = choose(errors, weight) if len(bandwidths) > 1 and len(weight) else 0
        networks = networks[best * n_compared : (best + 1) * n_compared]
        if others := [(bandwidths[best], member) for member in range(n_compared, settings.members)]:
            networks += Networks(rows, parts, others, settings, **options).train()
    if not all(network.best_epoch for network in networks):
        raise InputError(f"lr must be smaller: training diverged, got {settings.lr!r}")
    return networks, best, errors @ weight / weight.sum() if len(weight) else np.full(len(bandwidths), np.nan)


def choose(errors: Floats, weight: Floats) -> int:
    """Return the place of the bandwidth that wins: the first, unless another one is better by a standard error.

    Errors (B, n) are of each bandwidth on the same rows of a weight (n,), infinite where training diverged.
    """
    means = np.average(errors, axis=1, weights=weight)
    if not np.isfinite(means[0]):
        return int(means.argmin())
    gains = errors[0] - errors
    mean = means[0] - means
    with np.errstate(invalid="ignore"):
        variance = np.average((gains - mean[:, None]) ** 2, axis=1, weights=weight)
    wins = mean > np.sqrt(variance * (weight**2).sum()) / weight.sum()
    return int(np.where(wins, means, np.where(np.arange(len(means)) == 0, means, np.inf)).argmin())


class Networks:
    """Networks that are trained as one stack, which becomes smaller as they stop.

    Those of one member have the same first weights, batches and lambda. `places` are those in the stack; `scored` and
    `shares` (E, k) the rows that each holds out, and their weights.

    Args:
        rows: standardised rows.
        parts: the rows that each member is trained on, and those that it holds out: they choose the epoch, or score the
            last one where it is not chosen. Where members train on different numbers of rows, an epoch of each is as
            long as that of the largest.
        nets: bandwidth, in units of the standardised labels, and member of each network. One that mixes is given up
            unless it is better once the same member has stopped without mixing.
        settings: how to train.
        pieces: the table of `Pieces`.
        effects: (M, N, E) further columns of each member.
        seed: of all random streams.
    """

    def __init__(
        self, rows: Rows, parts: Sequence[Part], nets: Sequence[tuple[float, int]], settings: Settings, *,
        pieces: Floats, effects: Floats, seed: int,
    ) -> None:  # fmt: skip
        self.rows, self.nets, self.settings = rows, nets, settings
        self.mixed = any(bandwidth > 0 for bandwidth, _ in nets)
        inputs = joined(rows.x, effects)
        y, domain = torch.from_numpy(rows.y.astype(np.float32)), torch.zeros(len(rows), dtype=torch.int64)
        tables = torch.from_numpy(inputs.reshape(-1, *inputs.shape[-2:]).astype(np.float32))  # one without effects
        splits = [Split(x, y, domain, "X") for x in tables]
        data = [RegressionData("X", split, split, split, unit="standard deviations") for split in splits]
        self.data = [data[member % len(data)] for _, member in nets]
        self.streams = [Streams(int(np.random.default_rng([seed, member]).integers(2**62))) for _, member in nets]
        self.trained_on = [parts[member].train for _, member in nets]
        held_out = [parts[member].held for _, member in nets]
        self.held_rows = [len(index) for index in held_out]
        self.scored = pad_sequence([torch.from_numpy(index) for index in held_out], batch_first=True)
        mask = pad_sequence([torch.ones(len(index)) for index in held_out], batch_first=True).numpy()
        share = rows.weight[self.scored.numpy()] * mask
        self.shares = torch.from_numpy(share / share.sum(axis=1, keepdims=True))
        encoding = Pieces(pieces, settings.device, torch.float32)
        error = settings.loss.of_batch(bool(np.isnan(rows.y).any()))
        sizes = (inputs.shape[-1], *settings.hidden, rows.y.shape[1] * settings.loss.outputs)
        self.models: list[MLP] = []
        self.methods: list[Method] = []
        runs = zip(nets, self.data, self.streams, self.trained_on, strict=True)
        for (bandwidth, _), run_data, streams, index in runs:
            with torch_seed(streams.init):
                self.models.append(MLP(sizes, encoding))
            pairing = WeightedLabels(rows.y[index], rows.weight[index], bandwidth)
            method = Mix(pairing, Beta(settings.alpha)) if self.mixed else ERM()
            method.error = error
            method.fit(run_data, self.models[-1], streams)
            self.methods.append(method)
        self.rates = [settings.lr] * len(nets)
        self._build(list(range(len(nets))))
        self.whole = self.stack

    def train(self) -> list[Trained]:
        """Train until all have stopped, and return the result of each."""
        size, settings = len(self.models), self.settings
        unmixed_place = {member: place for place, (bandwidth, member) in enumerate(self.nets) if bandwidth == 0}
        rivals = [unmixed_place.get(member, place) for place, (_, member) in enumerate(self.nets)]
        score, row_error = (torch.full(shape, torch.inf, dtype=torch.float64) for shape in ((size,), self.scored.shape))
        best_epoch, last_fall, falls = torch.zeros((3, size), dtype=torch.int64)
        stopped = torch.zeros(size, dtype=torch.bool)
        curves: list[list[float]] = [[] for _ in range(size)]

        with threads(settings.threads), torch.enable_grad():
            for epoch in range(1, settings.epochs + 1):
                places, losses, score_text = self.places, self.run_epoch(), ""
                for place, loss in zip(places, losses.tolist(), strict=True):
                    curves[place] += [] if stopped[place] else [loss]
                if settings.early_stopping or epoch == settings.epochs:
                    errors, current = self.errors(), losses
                    if errors.numel():
                        current = (errors * self.shares[places]).sum(dim=1)
                        score_text = f", {current.mean():.4f} held out"
                    # A run that has stopped keeps its epoch, so that it ends as it would have without the others.
                    better = torch.isfinite(current) & ~stopped[places]
                    better &= (current < score[places]) | (not settings.early_stopping)
                    self.stack.keep_best(better.to(settings.device))
                    improved = torch.tensor(places)[better]
                    score[improved], row_error[improved], best_epoch[improved] = current[better], errors[better], epoch
                    patience = ((settings.patience + best_epoch) / 2).clamp(max=settings.patience)
                    if settings.falls:  # where epochs are long a network waits for as long as it has taken
                        patience = (best_epoch / 2).clamp(*WAITS) / torch.where(falls > 0, 4, 1)
                    waited = epoch - torch.maximum(best_epoch, last_fall) >= patience
                    stopped |= waited & (falls == settings.falls)
                    stopped |= stopped[rivals] & (score >= score[rivals])
                    if settings.falls:
                        last_fall[waited] = epoch
                        falls += waited
                        self.stack.load_best(waited[places].to(settings.device))
                        self.rates = (settings.lr * FALL**falls).tolist()
                if settings.verbose:
                    line = f"epoch {epoch}: {settings.loss.name} error {losses.nanmean():.4f}{score_text}"
                    print(line, flush=True)  # noqa: T201 - asked for
                if bool(stopped.all()):
                    break
                self.go_on_with([place for place in places if not stopped[place]])
        self.whole.put_best(self.stack, self.places)
        held_errors = [values[:count].numpy() for values, count in zip(row_error, self.held_rows, strict=True)]
        return [Trained(self.whole.best_weights(e), held_errors[e], int(best_epoch[e]), curves[e]) for e in range(size)]

    def run_epoch(self) -> Tensor:
        """Train for an epoch and return the mean loss of each network in the stack, float64 on the CPU."""
        orders, draws, length = [], [], max(map(len, self.trained_on))
        for place in self.places:
            index, streams = self.trained_on[place], self.streams[place]
            order = epoch_batches(self.rows.weight[index], self.settings.batch_size, streams.order, length)
            drawn = self.methods[place].draw(order, streams)
            draws.append(drawn | ({"partner": index[drawn["partner"]]} if self.mixed else {}))
            orders.append(EpochBatches(index[order.index], order.sizes))
        self.stack.model.train()
        if self.settings.falls:
            self.stack.optimizer.lr = [self.rates[place] for place in self.places]
        steps = [self.method.step(self.stack, batch) for batch in self.loader.batches(orders, draws)]
        return torch.stack(steps).reshape(len(steps), -1).double().mean(dim=0).cpu()

    def errors(self) -> Tensor:
        """Return errors `(E, k)` float64 on the CPU of the rows held out, averaged over known outputs."""
        self.stack.model.eval()
        errors = []
        with torch.no_grad():
            for index in torch.split(self.scored[self.places].to(self.loader.index_device), EVAL_BATCH, dim=1):
                batch = self.loader.fetch(index)
                row_errors = self.settings.loss.of_rows(self.stack.model(batch.x).double(), batch.y.double())
                errors.append(row_errors.reshape(len(index), -1).cpu())
        return torch.cat(errors, dim=1)

    def go_on_with(self, places: list[int]) -> None:
        """Leave the others out of the stack, unless one alone would stay: a stack of one has another form."""
        if 1 < len(places) < len(self.places):
            self.whole.put_best(self.stack, self.places)
            old_stack, positions = self.stack, [self.places.index(place) for place in places]
            self._build(places)
            self.stack.take(old_stack, positions)

    def _build(self, places: list[int]) -> None:
        models, settings = [self.models[place] for place in places], self.settings
        self.places, self.method = places, stack_modules([self.methods[place] for place in places])
        self.stack = ModelStack(models, settings.device, "adam", settings.lr, settings.weight_decay)
        self.loader = BatchLoader([self.data[place].train for place in places], settings.device)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let PyTorch use so many threads inside the block, and put the number back; None leaves it."""
    previous = torch.get_num_threads()
    torch.set_num_threads(previous if count is None else check_count("n_threads", count, 1))
    try:
        yield
    finally:
        torch.set_num_threads(previous)
