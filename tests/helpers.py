"""Small data, runs and batches for the tests of the library."""

import copy
import json
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.mixing.linear import mix
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.base import Pairing
from cmixup.seeding import Streams, torch_seed
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.loader import BatchLoader
from cmixup.training.method import Method
from cmixup.training.model_stack import ModelStack
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, RunResult, train
from cmixup.training.training import Training
from scripts.config.compose import compose_train, option_names, part_file
from scripts.config.parts import ABOUT, check_part, target_of
from scripts.driver.checkpoints import Checkpoints

CPU = torch.device("cpu")
#: What a dataset says to the methods, for data as small as the tests'.
SMALL = (
    "preset=paper", "dataset.presets.paper.bandwidth=0.3", "dataset.presets.paper.alpha=0.5",
    "dataset.presets.paper.layer=input", "++dataset.presets.paper.inner_lr=0.05",
    "++dataset.presets.paper.inner_steps=2", "++dataset.groups=2", "++dataset.search={outer: 3, n_in: 2}",
)  # fmt: skip


def composed(name: str, **options: Any) -> Any:
    """The method that `method=NAME` trains on small data; a part is chosen by its name, as in `pairing="uniform"`."""
    return check_part("method", copy.deepcopy(_node(name, json.dumps(options)))).build()


@cache
def _node(name: str, options: str) -> dict[str, Any]:
    whole = whole_small("pascal1d" if method_kind(name).tasks else "airfoil", *SMALL)
    groups, values = {}, {}
    for key, value in json.loads(options).items():
        (groups if isinstance(value, str) and value in option_names(f"method/{key}") else values)[key] = value
    whole.method = put_together(name, **groups)
    for key, value in values.items():
        OmegaConf.update(whole, f"method.{key}", value)
    node: Any = OmegaConf.to_container(whole.method, resolve=True)
    return {key: value for key, value in node.items() if key not in ABOUT["method"]}


@cache
def whole_small(dataset: str, *words: str) -> DictConfig:
    """What Hydra composes once for all methods on a dataset, each of which is put into it in turn."""
    return compose_train([f"dataset={dataset}", *words])


def put_together(method: str, **groups: str) -> dict[str, Any]:
    """The node of a method as Hydra composes it, in a hundredth of the time: a file of each group, then its own."""
    method_node, node = part_file("method", method), {}
    for entry in method_node.get("defaults", ["_self_"]):
        if entry == "_self_":
            node |= {key: value for key, value in method_node.items() if key != "defaults"}
            continue
        if isinstance(entry, str):  # another method's file
            node |= put_together(entry, **{group: groups.pop(group) for group in choices(entry) if group in groups})
            continue
        ((group, name),) = entry.items()
        part = part_file(f"method/{group}", groups.pop(group, name))
        node |= part if group in part else {group: part}
    assert not groups, f"{method} has no {', '.join(groups)}"
    return copy.deepcopy(node)


def _kind_of(node: dict[str, Any]) -> Any:
    """The class of what a node builds."""
    made = target_of(node)
    return made if isinstance(made, type) else typing.get_type_hints(made)["return"]


def method_kind(method: str) -> type[Method]:
    """The class of what a method's configuration builds; it says which data it is for."""
    return _kind_of(part_file("method", method))


def choices(method: str) -> dict[str, str]:
    """Which file of each group below configs/method a method's configuration takes, by itself or with another's."""
    chosen: dict[str, str] = {}
    for entry in part_file("method", method).get("defaults", []):
        if entry != "_self_":
            chosen |= choices(entry) if isinstance(entry, str) else entry
    return chosen


def part_kind(method: str, group: str) -> Any:
    """The class of the pairing or mixing that a method's configuration chooses, or None."""
    if group not in choices(method):
        return None
    part = part_file(f"method/{group}", choices(method)[group])
    return _kind_of(part.get(group, part))


def needs_images(method: str) -> bool:
    """Whether the method's own mixing is of images."""
    return getattr(part_kind(method, "mixing"), "images", False)


_BATCH: dict[str, Any] = {"alpha": 2.0, "lam_per": "batch"}
_HIDDEN: dict[str, Any] = {**_BATCH, "layer": "hidden"}
#: Every configuration of a method for rows of numbers under its own name, and other options of some.
METHODS: dict[str, partial[Method]] = {
    name: partial(composed, name)
    for name in option_names("method")
    if not method_kind(name).tasks and not needs_images(name)
} | {
    "mixup_permutation": partial(composed, "mixup", pairing="permutation", **_BATCH),
    "cmixup_hidden": partial(composed, "cmixup", **_HIDDEN),
    "cmixup_batch_both": partial(composed, "cmixup_batch", candidates="b1+b2", factor=2.0, **_HIDDEN),
    "k_mixup_hidden": partial(composed, "k_mixup", k=3, second="independent", **_HIDDEN),
    "local_mixup_hidden": partial(composed, "local_mixup", form="exponential", pairing="permutation", **_HIDDEN),
    "local_mixup_knn": partial(composed, "local_mixup", form="knn", k=12),
    "foma": partial(composed, "foma", batches="shuffled"), "irm": partial(composed, "irm", anneal=2),
    "ib_irm": partial(composed, "ib_irm", anneal=1, ib_anneal=2), "vrex": partial(composed, "vrex", anneal=2),
    "drnn": partial(composed, "drnn"), "group_dro": partial(composed, "group_dro", eta=0.1),
    "mixrl_hidden": partial(composed, "mixrl", distance="both", final="argmax", outer=2, **_HIDDEN),
}  # fmt: skip
DOMAIN_METHODS = tuple(name for name in METHODS if method_kind(METHODS[name].args[0]).domains)


def refuses(
    cases: Iterable[tuple[Any, str]], call: Callable[[Any], object] = lambda case: case()
) -> Callable[..., None]:
    """A test that each case raises an `InputError` with such a message when it is called, or given to `call`."""

    @pytest.mark.parametrize(("case", "message"), cases)
    def test(case: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            call(case)

    return test


class WithBatchNorm(nn.Module):
    """A model that cannot be stacked and has buffers, one of them without axes."""

    def __init__(self, width: int, d_y: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, d_y))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def make_split(n: int, d: int = 3, d_y: int = 1, seed: int = 0, name: str = "train") -> Split:
    """BatchLoader in [0, 1] with distinct labels of about unit size; two domains."""
    rng = np.random.default_rng([seed, n, d])
    x = rng.random((n, d)).astype(np.float32)
    slopes = np.linspace(1, 3, d * d_y).reshape(d, d_y)
    y = np.sin(x @ slopes) + 0.1 * rng.normal(size=(n, d_y))
    return Split(
        torch.from_numpy(x), torch.from_numpy(y.astype(np.float32)), torch.from_numpy(np.arange(n) % 2), f"data/{name}"
    )


def make_data(
    seed: int = 0, sizes: tuple[int, int, int] = (48, 20, 17), d_y: int = 1, **changes: Any
) -> RegressionData:
    """A dataset whose rows depend on `seed`, as a split by seed would."""
    parts = [make_split(n, d_y=d_y, seed=seed, name=p) for n, p in zip(sizes, ("train", "val", "test"), strict=True)]
    return RegressionData("data", *parts, unit="none", **changes)


def in_float64(data: RegressionData) -> RegressionData:
    """The same rows as float64."""
    parts = {name: getattr(data, name) for name in ("train", "val", "test")}
    return replace(data, **{name: replace(s, x=s.x.double(), y=s.y.double()) for name, s in parts.items()})


def make_run(
    method: Method, seed: int = 0, data: RegressionData | None = None,
    model: Callable[[int, int], nn.Module] | None = None,
) -> Run:  # fmt: skip
    """A run whose model is initialised from its own stream, as the driver does."""
    data = data or make_data(seed)
    streams = Streams(seed)
    with torch_seed(streams.init):
        width, d_y = data.train.x[torch.tensor([0])].shape[-1], data.train.y.shape[1]
        made = model(width, d_y) if model else FCN3((width,), d_y)
    return Run(data, method, made, streams)


def settings(**changes: Any) -> TrainSettings:
    return TrainSettings(**{"epochs": 1, "batch_size": 16, "lr": 0.01, **changes})


def train_one(method: Method, seed: int = 0, data: RegressionData | None = None, **changes: Any) -> RunResult:
    (result,) = train([make_run(method, seed, data)], settings(**changes))
    return result


def fitted(run: Run) -> Run:
    """The run, its method fitted as the trainer does before training."""
    run.method.fit(run.data, run.model, run.streams)
    return run


def epoch_batches(run: Run, batch_size: int = 16) -> tuple[EpochBatches, list[Batch]]:
    """The order and the batches of a run's next epoch."""
    fitted(run)
    order = run.method.order(run.data.train, batch_size, run.streams, drop_last=False)
    drawn = run.method.draw(order, run.streams)
    return order, list(BatchLoader([run.data.train], CPU).batches([order], [drawn]))


def make_training(runs: Sequence[Run], *, resumed: bool = False, **changes: Any) -> Training:
    """The training of some runs as one stack, ready for its first step."""
    for run in runs:
        run.method.fit(run.data, run.model, None if resumed else run.streams)
    training = Training(runs, settings(**{"lr": 1e-3, **changes}), CPU, resumed=resumed)
    training.method.begin(training)
    return training


def make_stack(runs: Sequence[Run], **changes: Any) -> tuple[ModelStack, Any]:
    """The models and the methods of some runs as stacks, ready for their first step."""
    training = make_training(runs, **changes)
    return training.stack, training.method


def forward_mixed(model: Any, first: Tensor, second: Tensor, lam: Tensor, layer: str) -> Tensor:
    """The prediction where the states of two batches are mixed at `layer`."""
    return model.decode(mix(model.encode(first, layer), model.encode(second, layer), lam), layer)


def assert_diagnostics_close(ours: dict[str, float | str], theirs: dict[str, float | str], rel: float) -> None:
    """Numbers agree up to rounding, words exactly."""
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value == (theirs[name] if isinstance(value, str) else pytest.approx(theirs[name], rel=rel)), name


def assert_states_close(one: dict[str, Tensor], other: dict[str, Tensor], atol: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=atol, rtol=0, msg=lambda text, name=name: f"{name}: {text}")


def assert_states_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def states_differ(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return any(not torch.allclose(value, other[name], atol=1e-4) for name, value in one.items())


class Stopped(Exception):
    """Ends a training in the middle, as a kill would."""


def checkpoints(folder: Path, every: int = 1, key: str = "") -> Checkpoints:
    return Checkpoints(lambda seed: folder / f"seed={seed}", every, key)


def stop_after(epoch: int) -> Callable[[int, object], None]:
    """What is called after every epoch, and stops training in the middle."""

    def stop(now: int, rows: object) -> None:
        if now == epoch:
            raise Stopped

    return stop


def interrupted(
    make: Callable[[], list[Run]], where: Checkpoints, epoch: int, epochs: int = 5, **changes: Any
) -> list[RunResult]:
    """Train until `epoch` is over, stop, and train again from the start of the program."""
    how = settings(epochs=epochs, **changes)
    with pytest.raises(Stopped):
        train(make(), how, on_epoch=stop_after(epoch), checkpoints=where)
    heard: list[int] = []
    results = train(make(), how, on_epoch=lambda now, _: heard.append(now), checkpoints=where)
    first = epoch // where.every * where.every + 1
    assert heard == list(range(first, epochs + 1)) * (len(results) // results[0].stack)
    return results


def assert_same(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert_states_equal(one.state_dict, other.state_dict)
        assert (one.scores, one.history, one.best_epoch) == (other.scores, other.history, other.best_epoch)
        assert one.diagnostics == other.diagnostics


class SelfPairs(Pairing):
    """Every row with itself."""

    def fit(self, train: Split) -> None:
        pass

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        return order.index.copy()


class Lazy:
    """Inputs that are read when asked for; remembers how many rows each reading asked for."""

    def __init__(self, x: Tensor):
        self._x = x
        self.read_sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, index: Tensor) -> Tensor:
        self.read_sizes.append(len(index))
        return self._x[index]
