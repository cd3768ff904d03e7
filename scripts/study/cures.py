"""Can C-Mixup's harm be undone? Its bias where a function is curved, and two cures, with the study's budget.

Shrinking alpha: a row whose mixing is biased (curvature between partners, beyond the noise) is mixed less.
Un-shrinking: mixing trains on inputs and labels that are pulled towards the means of their partners; at test time the
network is asked where the input would have been pulled to, and its answer is stretched back (Carratino et al. 2022, "On
mixup regularization", for plain mixup; here with the means of C-Mixup's own partners).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Lam
from cmixup.order import EpochBatches
from cmixup.pairing.label import LabelDistance
from cmixup.sampling.bandwidth import resolve_bandwidth
from cmixup.seeding import Streams
from cmixup.training.trainer import RunResult
from scripts.driver.compose import compose_train
from scripts.driver.job import Job, plan
from scripts.driver.provenance import environment
from scripts.study.cell import Loader, nrmse, tune
from scripts.study.rules import SHARED_WORDS, Rules
from scripts.study.traits import mixing_bias, quick_fit

#: Where it is tried, with the words of scripts.train: the networks that users get by default.
TABLES = {
    "airfoil": ("dataset=airfoil",),
    "concrete": (
        "dataset=rdataset",
        "dataset.package=modeldata",
        "dataset.item=concrete",
        "dataset.target=compressive_strength",
    ),
}
STRENGTHS = (1.0, 4.0)
PARTNERS = 8  # drawn a row to measure its bias
SHARES = (0.03, 0.1, 0.3, 1.0)  # bandwidths in label std at which the bias is measured

Predict = Callable[[np.ndarray], np.ndarray]


# ---- shrinking alpha


class CurvedBeta(Lam):
    """Draws lam ~ Beta(a_i, a_i) for row i, `a_i = alpha / (1 + strength * r_i)` by its ratio r_i of bias to noise."""

    def __init__(self, alpha: float, strength: float):
        self.alpha, self.strength = alpha, strength

    def draw(self, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw as if no row were biased; `draw_rows` is what `CurvedMix` calls."""
        return rng.beta(self.alpha, self.alpha, int(sizes.sum())).astype(np.float32)

    def draw_rows(self, ratio: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one weight for each row of these ratios."""
        alpha = self.alpha / (1 + self.strength * ratio)
        return rng.beta(alpha, alpha).astype(np.float32)


class CurvedMix(Mix):
    """C-Mixup of inputs that mixes a row less where mixing is biased.

    Args:
        bandwidth: see `cmixup.pairing.label.LabelDistance`.
        alpha: of rows without bias.
        strength: how much a bias as large as the noise counts.
    """

    per_run: ClassVar[tuple[str, ...]] = ("pairing", "lam")

    def __init__(self, bandwidth: float | list, alpha: float, strength: float):
        super().__init__(LabelDistance(bandwidth), CurvedBeta(alpha, strength), layer="input")

    def fit(self, data: RegressionData, model: torch.nn.Module, streams: Streams | None) -> None:
        """Fit the pairing, and measure every row's ratio of bias to noise by the quick model."""
        super().fit(data, model, streams)
        self.ratio = bias_to_noise(data, self.pairing)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the partners, and a weight by each row's own alpha."""
        assert isinstance(self.lam, CurvedBeta)
        draws = self.pairing.named_draws(order, streams.partners)
        return {**draws, "lam": self.lam.draw_rows(self.ratio[order.index], streams.lam)}


def bias_to_noise(data: RegressionData, pairing: Any, seed: int = 0) -> np.ndarray:
    """Return, for each training row, its mean bias over partners against the error of a quick model, `(N,)`."""
    x, z = np.asarray(data.train.x).astype(np.float64), standardised(data)
    predict, out_of_fold = quick_fit(x, z, seed)
    rng, every = np.random.default_rng(seed), EpochBatches(np.arange(len(x)), np.array([len(x)]))
    each = [mixing_bias(predict, x, pairing.draw(every, rng)) for _ in range(PARTNERS)]
    found: np.ndarray = np.mean([np.sqrt(np.square(bias).mean(axis=1)) for bias in each], axis=0)
    return found / np.sqrt(np.square(out_of_fold - z).mean())


def standardised(data: RegressionData) -> np.ndarray:
    """Return the training labels in standard deviations, float64 `(N, d_y)`."""
    y = data.train.y.numpy().astype(np.float64)
    return (y - y.mean(axis=0)) / y.std(axis=0)


# ---- un-shrinking


@dataclass(frozen=True)
class Pull:
    """How mixing pulls inputs and labels towards their means: `mean + factor * (value - mean)` on average.

    Attributes:
        x_mean, x_factor: `(d,)`.
        y_mean, y_factor: `(d_y,)`.
    """

    x_mean: np.ndarray
    x_factor: np.ndarray
    y_mean: np.ndarray
    y_factor: np.ndarray

    def undo(self, predict: Predict, x: np.ndarray) -> np.ndarray:
        """Return the prediction for `x` of a function that was fitted to pulled inputs and labels."""
        pulled = self.x_mean + self.x_factor * (x - self.x_mean)
        return self.y_mean + (predict(pulled) - self.y_mean) / self.y_factor


def pull_of(data: RegressionData, alpha: float, bandwidth: float | list | None) -> Pull:
    """Return the pull of mixup (no bandwidth) or C-Mixup.

    The larger of lam and 1 - lam, whose mean is theta, is the weight of the row that an example is counted to; the rest
    pulls it to the mean of that row's partners, which moves with the row by a factor rho (regression of the partners'
    mean on the row). So the pull is by `theta + (1 - theta) rho`; rho is 0 for plain mixup.
    """
    x, y = np.asarray(data.train.x).astype(np.float64), data.train.y.numpy().astype(np.float64)
    draws = np.random.default_rng(0).beta(alpha, alpha, 100_000)
    theta = float(np.maximum(draws, 1 - draws).mean())
    rho_x, rho_y = np.zeros(x.shape[1]), np.zeros(y.shape[1])
    if bandwidth is not None:
        sigma = resolve_bandwidth(y, tuple(bandwidth) if isinstance(bandwidth, list) else bandwidth)
        squared = np.square(y[:, None] - y[None]).sum(axis=2)
        kernel = np.exp(-squared / (2 * sigma**2))
        kernel /= kernel.sum(axis=1, keepdims=True)
        rho_x, rho_y = (_slope(kernel @ values, values) for values in (x, y))
    return Pull(x.mean(axis=0), theta + (1 - theta) * rho_x, y.mean(axis=0), theta + (1 - theta) * rho_y)


def _slope(of_partners: np.ndarray, own: np.ndarray) -> np.ndarray:
    centred = own - own.mean(axis=0)
    spread = np.square(centred).sum(axis=0)
    found: np.ndarray = (centred * of_partners).sum(axis=0) / np.where(spread > 0, spread, 1.0)
    return found


# ---- trials and seeds


def predictor(job: Job, result: RunResult, data: RegressionData) -> Predict:
    """Return the network of a run as a function from inputs to labels in their unit."""
    model = job.make_model(np.asarray(data.train.x).shape[1:], data.train.y.shape[1])
    model.load_state_dict(result.state_dict)
    model.eval()
    scale = {key: np.array(values) for key, values in result.label_scaling.items()}

    def predict(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = model(torch.from_numpy(x.astype(np.float32))).numpy().astype(np.float64)
        return found * scale.get("std", 1.0) + scale.get("mean", 0.0)

    return predict


def error(job: Job, result: RunResult, data: RegressionData, part: str, *, undo: bool) -> float:
    """Return the error on a part in standard deviations of the label, with the pull undone or not."""
    if result.failure:
        return float("inf")
    split, predict = getattr(data, part), predictor(job, result, data)
    x = np.asarray(split.x).astype(np.float64)
    if undo:
        method = job.config["method"]
        prediction = pull_of(data, method["alpha"], method.get("bandwidth")).undo(predict, x)
    else:
        prediction = predict(x)
    return nrmse(prediction, split.y.numpy(), label_std(data))


@dataclass(frozen=True)
class Arm:
    """A method with its trials.

    Attributes:
        words: of every trial.
        strengths: of alpha's shrinking, one a trial; None keeps the configuration's own method.
        undo: whether predictions are un-shrunk, at choosing as well.
    """

    words: list[list[str]]
    strengths: list[float] | None = None
    undo: bool = False


def arms(rules: Rules) -> dict[str, Arm]:
    """Return ERM, mixup and C-Mixup by the study's rules, and the cures with as many trials."""
    plain = {name: [["method=" + name, *_fixed(rules, name), *words] for words in rules.trials(name)]
             for name in ("erm", "mixup", "cmixup")}  # fmt: skip
    grid = {**rules.methods["cmixup"]["grid"], "strength": list(STRENGTHS)}
    curved = replace(rules, methods={"curved": {"method": "cmixup", "grid": grid}})
    trials = curved.trials("curved")
    strengths = [float(word.partition("=")[2]) for words in trials for word in words if word.startswith("strength=")]
    fixed = ["method=cmixup", *_fixed(rules, "cmixup")]
    words = [[*fixed, *(word for word in each if not word.startswith("strength="))] for each in trials]
    return {
        **{name: Arm(each) for name, each in plain.items()},
        "mixup_unshrunk": Arm(plain["mixup"], undo=True),
        "cmixup_unshrunk": Arm(plain["cmixup"], undo=True),
        "cmixup_curved": Arm(words, strengths),
    }


def _fixed(rules: Rules, name: str) -> list[str]:
    return [f"{key}={value}" for key, value in rules.methods[name].get("fixed", {}).items()]


def train_arm(table: str, name: str, rules: Rules, load: Loader, say: Callable[[str], None]) -> dict[str, Any]:
    """Tune an arm on the tuning seed, train its seeds with the winner's options, and return the record."""
    arm = arms(rules)[name]
    jobs = [plan(compose_train([*TABLES[table], *SHARED_WORDS, *words])) for words in arm.words]
    if arm.strengths:
        jobs = [_curved(job, strength) for job, strength in zip(jobs, arm.strengths, strict=True)]
    best, _, final = tune(jobs, rules, load, partial(error, undo=arm.undo))
    say(f"{table} {name}: chose {' '.join(arm.words[best])}")
    job, rows = jobs[best], []
    for seed, result in enumerate(final):
        data = load(job, seed)
        row = {"seed": seed, "test": error(job, result, data, "test", undo=arm.undo)}
        if name == "erm":
            row |= {f"bias {key}": value for key, value in biases(predictor(job, result, data), data).items()}
        rows.append(row)
    return {
        "table": table, "arm": name, "options": arm.words[best],
        "strength": arm.strengths[best] if arm.strengths else None, "train_rows": len(load(job, 0).train),
        "unit": job.dataset.unit, "seeds": rows, "rules": rules.checksum, **environment(job.device),
    }  # fmt: skip


def label_std(data: RegressionData) -> np.ndarray:
    """Return the standard deviation of every target over all rows, `(d_y,)`."""
    found: np.ndarray = np.concatenate([split.y.numpy() for split in (data.train, data.val, data.test)]).std(axis=0)
    return found


def biases(predict: Predict, data: RegressionData, seed: int = 0) -> dict[str, float]:
    """Return the root mean squared bias of mixing half and half, in standard deviations of the label, by bandwidth."""
    x, rng = np.asarray(data.train.x).astype(np.float64), np.random.default_rng(seed)
    every, found = EpochBatches(np.arange(len(x)), np.array([len(x)])), {}
    for share in (*SHARES, None):
        if share is None:
            partner = rng.integers(len(x), size=len(x))
        else:
            pairing = LabelDistance(["std", share])
            pairing.fit(data.train)
            partner = pairing.draw(every, rng)
        bias = mixing_bias(predict, x, partner) / label_std(data)
        found["any" if share is None else f"{share:g}"] = float(np.sqrt(np.square(bias).mean()))
    return found


def _curved(job: Job, strength: float) -> Job:
    method: Mapping[str, Any] = job.config["method"]
    return replace(job, make_method=partial(CurvedMix, method["bandwidth"], method["alpha"], strength))
