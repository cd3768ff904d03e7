"""The arguments of `TabularRegressor`, checked."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone, is_regressor
from sklearn.ensemble import StackingRegressor

from cmixup.errors import (
    InputError,
    as_number,
    check_count,
    check_flag,
    check_nonnegative,
    check_positive,
    format_value,
)
from cmixup.sampling.bandwidth import parse_bandwidth
from cmixup.sampling.inputs import MAX_LABEL, Floats
from cmixup.saved_run import usable_device
from cmixup.sklearn.losses import Loss, check_loss
from cmixup.sklearn.transforms import check_transform

#: `patience` where it is left out, below so many rows.
PATIENCE, MANY_ROWS = 20, 20_000
#: The types that set the random numbers of the estimator.
RandomState = int | np.random.RandomState | np.random.Generator | None


def seed_of(random_state: RandomState) -> int:
    """Return a seed: the number itself, one drawn from a generator, or for None one from the operating system."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    return check_count("random_state", random_state, what="None, a NumPy generator or a whole number")


def device_of(device: Any) -> torch.device:
    """Return a device of this machine: "auto" is the GPU where there is one."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if (usable := usable_device(device)).type not in ("cpu", "cuda"):
        raise InputError(f'device must be "cpu", "cuda" or "auto", got {device!r}')
    return usable


def check_blend(blend: Any, loss: Loss) -> None:
    """Raise `InputError` unless `blend` is None, "trees" or a regressor that goes with the loss."""
    if blend is None or (isinstance(blend, str) and blend == "trees"):
        return
    has_methods = all(hasattr(blend, name) for name in ("fit", "predict", "get_params"))
    has_methods |= isinstance(blend, StackingRegressor)  # whose `predict` comes with its fit
    if isinstance(blend, type) or not has_methods or not is_regressor(blend):
        expected = '"trees", None or a regressor of scikit-learn\'s interface'
        raise InputError(f"blend must be {expected}, got {format_value(blend)}")
    if loss.quantiles:
        raise InputError(f'blend must be "trees" or None with loss="quantile", got {format_value(blend)}')
    try:
        clone(blend)
    except RuntimeError as error:  # such as CatBoost's with a list
        reason = " ".join(str(error).split())
        raise InputError(f"blend must be a regressor that clones, as with tuples for lists: {reason}") from None


def check_size(name: str, values: Floats) -> Floats:
    """Return values if their squares are finite, NaN aside, else raise `InputError`."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    if largest > MAX_LABEL:
        raise InputError(f"{name} must be within +-{MAX_LABEL:g}, got {largest!r}")
    return values


@dataclass(frozen=True)
class Settings:
    """The checked arguments of `TabularRegressor`; see there."""

    hidden: tuple[int, ...]
    members: int
    share: float  # `validation_fraction`
    validated: bool  # whether held-out rows choose the bandwidth
    blend: bool
    loss: Loss
    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    alpha: float
    early_stopping: bool
    patience: int  # 0 for None
    device: torch.device
    threads: int | None
    verbose: bool
    falls: int = 0  # how often a network that has waited goes on at a lower learning rate before it stops

    def of_rows(self, count: int) -> Self:
        """Return the settings for so many rows: of many, fewer passes by larger steps that become smaller."""
        if self.patience:
            return self
        if count < MANY_ROWS:
            return replace(self, patience=PATIENCE)
        return replace(self, falls=2, batch_size=4 * self.batch_size, lr=2 * self.lr)


def settings_of(estimator: Any) -> Settings:
    """Return the checked arguments of the estimator, or raise `InputError`."""
    sizes = np.atleast_1d(estimator.hidden_layer_sizes).tolist()
    hidden = tuple(check_count("hidden_layer_sizes", size, 1, "whole numbers") for size in sizes)
    check_transform(estimator.target_transform)
    if not 0 < (share := as_number("validation_fraction", estimator.validation_fraction)) < 1:
        raise InputError(f"validation_fraction must lie between 0 and 1, got {share!r}")
    if not (validated := isinstance(estimator.bandwidth, str) and estimator.bandwidth == "validated"):
        parse_bandwidth(estimator.bandwidth)
    check_blend(estimator.blend, loss := check_loss(estimator.loss, estimator.quantiles))
    threads = estimator.n_threads
    return Settings(
        hidden, members=check_count("members", estimator.members, 1), share=share, validated=validated,
        blend=estimator.blend is not None, loss=loss, epochs=check_count("epochs", estimator.epochs, 1),
        batch_size=check_count("batch_size", estimator.batch_size, 1), lr=check_positive("lr", estimator.lr),
        weight_decay=check_nonnegative("weight_decay", estimator.weight_decay),
        alpha=check_positive("alpha", estimator.alpha),
        early_stopping=check_flag("early_stopping", estimator.early_stopping),
        patience=0 if estimator.patience is None else check_count("patience", estimator.patience, 1),
        device=device_of(estimator.device),
        threads=None if threads is None else check_count("n_threads", threads, 1),
        verbose=check_flag("verbose", estimator.verbose),
    )  # fmt: skip
