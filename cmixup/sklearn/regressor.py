"""`CMixupRegressor`: a network trained with C-Mixup, as a scikit-learn estimator."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from cmixup.errors import (
    MIN_BANDWIDTH,
    InputError,
    as_number,
    check_count,
    check_flag,
    check_nonnegative,
    check_positive,
)
from cmixup.sampling.bandwidth import Bandwidth, parse_bandwidth, resolve_bandwidth
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.fitting import Settings, threads, train_networks
from cmixup.sklearn.network import arrays_of, mix_points, network_of
from cmixup.sklearn.options import RandomState, check_size, device_of, seed_of
from cmixup.sklearn.persistence import read_estimator, write_estimator
from cmixup.sklearn.rows import Rows, merged, moments, standardised

#: What `bandwidth="auto"` tries, in standard deviations of the labels: from no mixing (ERM) to any partner (mixup).
BANDWIDTHS = (0.0, 0.1, 0.3, 1.0, np.inf)
PREDICTED_AT_ONCE = 1 << 14


class CMixupRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Fully connected network with ReLU, trained by Adam on rows mixed with partners of near labels (C-Mixup).

        CMixupRegressor(random_state=0).fit(X, y).predict(X_new)

    A row is mixed with one of the whole training set, drawn with P(j|i) ~ w_j exp(-|y_i - y_j|^2 / 2 bandwidth^2)
    exactly (Yao et al. 2022, Eq. 6), and the loss is the squared error of the mixed label. Inputs and labels are
    standardised; a column that is constant in training is ignored. Predictions are in label units. Two fits with the
    same `random_state` are equal on the same kind of processor; global random generators are not touched.

    A row of `sample_weight` 2 is the same as the row given twice, one of 0 as no row, and the order of rows does not
    matter: equal rows are one with their weights' sum, an epoch is as many rows as there are different ones, and row i
    comes in it in proportion to its weight. So only the ratios of the weights matter.

    Args:
        hidden_layer_sizes: units of each hidden layer; () is a linear model.
        bandwidth: s of the kernel. "auto" trains a network for each of 0, 0.1, 0.3, 1 standard deviations and infinity
            side by side, each with a copy of the training rows, and keeps the best on the rows held out. Else what
            `parse_bandwidth` takes: a number in label units, ("std", c), ("fraction", f) or ("median", c). 0 mixes
            nothing (ERM), infinity mixes any two rows (mixup). Several outputs are compared each in its standard
            deviations, and a number is in these.
        alpha: lambda is drawn from Beta(alpha, alpha) for each row.
        layer: "input", "hidden" (behind the first hidden layer, Manifold Mixup) or "block1", "block2", ...
        epochs: passes over the training rows, at most.
        batch_size: rows a step.
        lr: learning rate of Adam.
        weight_decay: L2 penalty on weights and biases.
        early_stopping: whether to hold out rows, keep the epoch that predicts them best, and stop after `patience`
            epochs without a better one. Otherwise the last epoch is kept, and rows are held out for "auto" alone.
        validation_fraction: share of different rows held out, between 0 and 1; one row at least.
        patience: see `early_stopping`.
        random_state: a whole number, a NumPy generator, or None for a seed from the operating system.
        device: "cpu", "cuda" (or "cuda:1"), or "auto" for the GPU where there is one.
        n_threads: PyTorch's threads in `fit` and `predict`; None leaves their number. One is the default since a step
            of a small network is too short to be shared: two threads mostly wait for each other, several times slower
            where other processes run, as in a search with `n_jobs`. The number is put back afterwards.

    Attributes:
        bandwidth_: s in use: in label units, or in standard deviations where there are several outputs.
        bandwidths_: (k,) those tried, in the same units.
        validation_scores_: (k,) root mean squared error of each on the rows held out, in standard deviations of the
            labels; NaN where none are.
        best_epoch_, n_epochs_: the epoch that was kept, and how many were trained.
        coefs_, intercepts_: float32 matrices (in, out) and biases (out,) of the layers, on standardised values.
        x_mean_, x_scale_, y_mean_, y_scale_: float64, moments for standardising; 0 for constant columns.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (128, 128),
        *,
        bandwidth: Bandwidth = "auto",
        alpha: float = 2.0,
        layer: str = "input",
        epochs: int = 200,
        batch_size: int = 64,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        patience: int = 20,
        random_state: RandomState = None,
        device: str = "cpu",
        n_threads: int | None = 1,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.layer = layer
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows (n, d) with labels (n,) or (n, d_y).

        Args:
            X: real finite numbers, an array or a frame.
            y: real finite labels in their own units.
            sample_weight: (n,) 0 or more, not all 0; equal if left out.

        Raises:
            InputError: an argument cannot be used, or training diverged; a ValueError.
            ValueError: data that scikit-learn refuses.
        """
        settings, share = self._settings(), self._share()
        auto = isinstance(self.bandwidth, str) and self.bandwidth == "auto"
        if not auto:
            parse_bandwidth(self.bandwidth)
        seed = seed_of(self.random_state)
        X, y = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2, order="C"
        )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise InputError("Sample weights must contain at least one non-zero number.")
        labels = check_size("y", np.asarray(y, dtype=np.float64).reshape(len(y), -1))
        rows = merged(check_size("X", X), labels, weight)

        train, held_out = rows, None
        if (auto or settings.early_stopping) and len(rows) > 1:
            order = np.random.default_rng([seed, 0]).permutation(len(rows))
            count = min(max(1, round(share * len(rows))), len(rows) - 1)
            train, held_out = rows.take(np.sort(order[count:])), rows.take(np.sort(order[:count]))
        self.x_mean_, self.x_scale_ = moments(train.x, train.weight)
        self.y_mean_, self.y_scale_ = moments(train.y, train.weight)
        train = self._standardised(train)
        tried = np.array(BANDWIDTHS) if auto else np.array([self._in_deviations(train.y)])
        found = train_networks(train, held_out and self._standardised(held_out), tried.tolist(), settings, seed)
        scores = np.array([network.score for network in found])
        best = int(np.nan_to_num(scores, nan=np.inf).argmin())
        self.bandwidths_ = tried * self._unit()
        self.bandwidth_ = float(self.bandwidths_[best])
        self.validation_scores_ = scores
        self.best_epoch_, self.n_epochs_ = found[best].best_epoch, found[best].epochs
        self.coefs_, self.intercepts_ = arrays_of(found[best].weights)
        self._one_dimensional = y.ndim == 1
        return self

    def predict(self, X: Any) -> Floats:
        """Return predictions for rows (n, d) in label units, (n,) or (n, d_y) float64 as the labels were.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
            ValueError: rows that scikit-learn refuses, such as another number of features.
        """
        check_is_fitted(self)
        device = device_of(self.device)
        X = check_size("X", validate_data(self, X, dtype=np.float64, reset=False, order="C"))
        network = network_of(self.coefs_, self.intercepts_).to(device)
        inputs = torch.from_numpy(standardised(X, self.x_mean_, self.x_scale_))
        with threads(self.n_threads), torch.inference_mode():
            parts = [network(part.to(device)).cpu().numpy() for part in torch.split(inputs, PREDICTED_AT_ONCE)]
        predicted = np.concatenate(parts) * self.y_scale_ + self.y_mean_
        return predicted[:, 0] if self._one_dimensional else predicted

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file of arrays and JSON (NumPy's npz), without pickle; see `load`.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
            InputError: an argument has no form in JSON, such as a generator as `random_state`.
        """
        check_is_fitted(self)
        write_estimator(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the estimator that `save` wrote: its predictions are the same to the last bit.

        No code of the file is run, whoever wrote it.

        Raises:
            InputError: the file is not one of these.
        """
        return read_estimator(cls, path)

    def _settings(self) -> Settings:
        """Return the checked arguments that training needs."""
        given = self.hidden_layer_sizes
        sizes = [given] if isinstance(given, int | np.integer) else given
        if isinstance(sizes, str) or not hasattr(sizes, "__iter__"):
            raise InputError(f"hidden_layer_sizes must be whole numbers, got {given!r}")
        hidden = tuple(check_count("hidden_layer_sizes", size, 1, "whole numbers") for size in sizes)
        layer = "block1" if self.layer == "hidden" else self.layer
        names = mix_points(len(hidden))
        if layer not in names:
            raise InputError(f"layer must be one of hidden, {', '.join(names)}, got {self.layer!r}")
        return Settings(
            hidden,
            epochs=check_count("epochs", self.epochs, 1),
            batch_size=check_count("batch_size", self.batch_size, 1),
            lr=check_positive("lr", self.lr),
            weight_decay=check_nonnegative("weight_decay", self.weight_decay),
            alpha=check_positive("alpha", self.alpha),
            layer=layer,
            early_stopping=check_flag("early_stopping", self.early_stopping),
            patience=check_count("patience", self.patience, 1),
            device=device_of(self.device),
            threads=None if self.n_threads is None else check_count("n_threads", self.n_threads, 1),
        )

    def _share(self) -> float:
        share = as_number("validation_fraction", self.validation_fraction)
        if not 0 < share < 1:
            raise InputError(f"validation_fraction must lie between 0 and 1, got {share!r}")
        return share

    def _standardised(self, rows: Rows) -> Rows:
        x = standardised(rows.x, self.x_mean_, self.x_scale_)
        return Rows(x, standardised(rows.y, self.y_mean_, self.y_scale_), rows.weight)

    def _unit(self) -> float:
        """Return one standard deviation in the unit of the argument `bandwidth`."""
        return float(self.y_scale_[0]) if len(self.y_scale_) == 1 and self.y_scale_[0] > 0 else 1.0

    def _in_deviations(self, labels: Floats) -> float:
        """Return the bandwidth that was asked for in units of standardised labels (n, d_y)."""
        parsed = parse_bandwidth(self.bandwidth)
        if isinstance(parsed, float):
            return max(parsed / self._unit(), MIN_BANDWIDTH) if parsed > 0 else 0.0
        return parsed[1] if parsed[0] == "std" else resolve_bandwidth(labels, parsed)
