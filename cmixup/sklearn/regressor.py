"""`CMixupRegressor`: a network trained with C-Mixup, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from itertools import zip_longest
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
from cmixup.sklearn.columns import categorical_columns, coded, indicators_of, levels_of, pieces_of, widened
from cmixup.sklearn.fitting import Settings, choose, threads, train_networks
from cmixup.sklearn.network import arrays_of, mix_points, networks_of
from cmixup.sklearn.options import RandomState, check_size, device_of, seed_of
from cmixup.sklearn.persistence import read_estimator, write_estimator
from cmixup.sklearn.rows import Rows, merged, moments, standardised

#: Up to so many rows "auto" compares all bandwidths on the rows that every member holds out.
CROSS_VALIDATED = 1000
#: What `bandwidth="auto"` tries, in standard deviations of the labels: from no mixing (ERM) to any partner (mixup).
BANDWIDTHS = (0.0, 0.1, 0.3, 1.0, np.inf)
PREDICTED_AT_ONCE = 1 << 14
NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "order": "C"}


class CMixupRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Fully connected networks with ReLU, trained by Adam on rows mixed with partners of near labels (C-Mixup).

        CMixupRegressor(random_state=0).fit(X, y).predict(X_new)

    The prediction is the mean of several networks, which are trained as one stack and each hold other rows out. A row
    is mixed with one of all rows that its network is trained on, drawn with
    P(j|i) ~ w_j exp(-|y_i - y_j|^2 / 2 bandwidth^2) exactly (Yao et al. 2022, Eq. 6), and the loss is the squared error
    of the mixed label. Inputs and labels are standardised; a column that is constant in training is ignored, a missing
    number is the mean and has a column that says so, and a category is a column for each level. Predictions are in
    label units. Two fits with the same `random_state` are equal on the same kind of processor; global random generators
    are not touched.

    A row of `sample_weight` 2 is the same as the row given twice, one of 0 as no row, and the order of rows does not
    matter: equal rows are one with their weights' sum, an epoch is as many rows as there are different ones, and row i
    comes in it in proportion to its weight. So only the ratios of the weights matter.

    Args:
        hidden_layer_sizes: units of each hidden layer; () is a linear model of columns and pieces.
        members: networks that are averaged.
        bandwidth: s of the kernel. "auto" compares 0, 0.1, 0.3, 1 standard deviations and infinity on the rows that all
            members hold out, or above 1,000 different rows 0, 0.3 and infinity on those of the first member, and takes
            another one than 0 only if it is better by a standard error. Else what `parse_bandwidth` takes: a number in
            label units, ("std", c), ("fraction", f) or ("median", c). 0 mixes nothing (ERM), infinity mixes any two
            rows (mixup). Several outputs are compared each in its standard deviations, and a number is in these.
        alpha: lambda is drawn from Beta(alpha, alpha) for each row.
        layer: "input", "hidden" (behind the first hidden layer, Manifold Mixup) or "block1", "block2", ...
        epochs: passes over the training rows, at most.
        batch_size: rows a step.
        lr: learning rate of Adam.
        weight_decay: L2 penalty on weights and biases.
        early_stopping: whether to hold out rows, keep the epoch that predicts them best, and stop after `patience`
            epochs without a better one. Otherwise the last epoch is kept, and rows are held out for "auto" alone.
        validation_fraction: share of different rows that a member holds out, between 0 and 1; one row at least.
        patience: see `early_stopping`.
        n_pieces: each column of numbers is also given to the networks as so many pieces between its quantiles, behind
            the mix point "input" (piecewise-linear encoding, Gorishniy et al. 2022); fewer for small or wide tables,
            see `pieces_of`; 0 for none.
        categorical_features: columns that hold categories, as in `HistGradientBoostingRegressor`: "from_dtype" for
            pandas' category columns, None, or names, positions or a mask. A level that training has not seen is none.
        verbose: whether to print each epoch's mean squared error, in squared standard deviations.
        random_state: a whole number, a NumPy generator, or None for a seed from the operating system.
        device: "cpu", "cuda" (or "cuda:1"), or "auto" for the GPU where there is one.
        n_threads: PyTorch's threads in `fit` and `predict`; None leaves their number. One is the default since a step
            of a small network is too short to be shared: two threads mostly wait for each other, several times slower
            where other processes run, as in a search with `n_jobs`. The number is put back afterwards.

    Attributes:
        bandwidth_: s in use: in label units, or in standard deviations where there are several outputs.
        bandwidths_: (k,) those tried, in the same units.
        validation_scores_: (k,) root mean squared error of single networks with each on the rows held out, in standard
            deviations of the labels; NaN where none are.
        best_epoch_: the epoch that each member kept.
        n_epochs_: how many were trained, at most.
        loss_curve_: mean squared error of each epoch's mixed rows, in squared standard deviations, over the members
            still in training.
        coefs_, intercepts_: float32 matrices (members, in, out) and biases (members, out) of the layers, on
            standardised values.
        x_mean_, x_scale_, y_mean_, y_scale_: float64, moments for standardising; 0 for constant columns. Of x: columns
            of numbers, then those of gaps and levels.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (128, 128),
        *,
        members: int = 5,
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
        n_pieces: int = 32,
        categorical_features: Any = "from_dtype",
        verbose: bool = False,
        random_state: RandomState = None,
        device: str = "cpu",
        n_threads: int | None = 1,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.members = members
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
        self.n_pieces = n_pieces
        self.categorical_features = categorical_features
        self.verbose = verbose
        self.random_state = random_state
        self.device = device
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows (n, d) with labels (n,) or (n, d_y).

        Args:
            X: real numbers, NaN where one is missing, and categories: an array, a frame or a sparse matrix, which is
                made dense.
            y: real finite labels in their own units.
            sample_weight: (n,) 0 or more, not all 0; equal if left out.

        Raises:
            InputError: an argument cannot be used, or training diverged; a ValueError.
            ValueError: data that scikit-learn refuses.
        """
        settings, share = self._settings(), self._share()
        members, auto = check_count("members", self.members, 1), self._auto()
        seed = seed_of(self.random_state)
        rows = self._encoded(self._read(X, y, sample_weight))
        held_out = [np.arange(0)] * members
        if (auto or settings.early_stopping) and len(rows) > 1:
            order = np.random.default_rng([seed, 0]).permutation(len(rows))
            count = min(max(1, round(share * len(rows))), len(rows) - 1)
            held_out = [np.sort(np.roll(order, -member * count)[:count]) for member in range(members)]
        few = len(rows) <= CROSS_VALIDATED
        tried = list(BANDWIDTHS if few else BANDWIDTHS[::2]) if auto else [self._in_deviations(rows.y)]
        compared = members if few or not auto else 1
        with warnings.catch_warnings():
            if auto:  # some of what it tries may mix nothing
                warnings.filterwarnings("ignore", "bandwidth .* leaves every row its own partner")
            nets = [(bandwidth, member) for bandwidth in tried for member in range(compared)]
            found = train_networks(rows, held_out, nets, settings, pieces=self._pieces, seed=seed)
            errors = np.concatenate([network.errors for network in found]).reshape(len(tried), -1)
            weight = rows.weight[np.concatenate(held_out[:compared])]
            best = choose(errors, weight) if auto else 0
            found = found[best * compared : (best + 1) * compared]
            nets = [(tried[best], member) for member in range(compared, members)]
            found += train_networks(rows, held_out, nets, settings, pieces=self._pieces, seed=seed) if nets else []
        if not all(network.best_epoch for network in found):
            raise InputError(f"lr must be smaller: training diverged, got {settings.lr!r}")
        self.bandwidths_ = np.array(tried) * self._unit()
        self.bandwidth_ = float(self.bandwidths_[best])
        self.validation_scores_ = (
            np.sqrt(errors @ weight / weight.sum()) if len(weight) else np.full(len(tried), np.nan)
        )
        self.best_epoch_ = [network.best_epoch for network in found]
        curves = list(zip_longest(*(network.losses for network in found), fillvalue=np.nan))
        self.n_epochs_, self.loss_curve_ = len(curves), np.nanmean(curves, axis=1).tolist()
        self.coefs_, self.intercepts_ = arrays_of([network.weights for network in found])
        return self

    def predict(self, X: Any) -> Floats:
        """Return predictions for rows (n, d) in label units, (n,) or (n, d_y) float64 as the labels were.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
            ValueError: rows that scikit-learn refuses, such as another number of features.
        """
        check_is_fitted(self)
        device = device_of(self.device)
        if any(levels is not None for levels in self._levels):
            validate_data(self, X, reset=False, skip_check_array=True)
        X = validate_data(self, coded(X, self._levels), reset=False, **NUMBERS)
        x = widened(check_size("X", X), self._levels, self._indicators)
        inputs = torch.from_numpy(np.nan_to_num(standardised(x, self.x_mean_, self.x_scale_)))
        networks = [n.to(device) for n in networks_of(self.coefs_, self.intercepts_, self._pieces)]
        with threads(self.n_threads), torch.inference_mode():
            parts = [
                torch.stack([network(part.to(device)) for network in networks]).mean(dim=0).cpu().numpy()
                for part in torch.split(inputs, PREDICTED_AT_ONCE)
            ]
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
            verbose=check_flag("verbose", self.verbose),
        )

    def _share(self) -> float:
        share = as_number("validation_fraction", self.validation_fraction)
        if not 0 < share < 1:
            raise InputError(f"validation_fraction must lie between 0 and 1, got {share!r}")
        return share

    def _auto(self) -> bool:
        auto = isinstance(self.bandwidth, str) and self.bandwidth == "auto"
        if not auto:
            parse_bandwidth(self.bandwidth)
        return auto

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Return the different rows of a table, categories as numbers of their levels."""
        categorical = categorical_columns(self.categorical_features, X)
        self._levels = levels_of(X, categorical, np.shape(X)[1]) if categorical else []
        X, y = validate_data(
            self, coded(X, self._levels), y, multi_output=True, y_numeric=True, ensure_min_samples=2, **NUMBERS
        )
        self._levels, self._one_dimensional = self._levels or [None] * X.shape[1], y.ndim == 1
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise InputError("Sample weights must contain at least one non-zero number.")
        labels = check_size("y", np.asarray(y, dtype=np.float64).reshape(len(y), -1))
        return merged(check_size("X", X), labels, weight)

    def _encoded(self, rows: Rows) -> Rows:
        """Fit to rows how inputs and labels become those of the networks, and return them as such."""
        self._indicators = indicators_of(rows.x, self._levels)
        x = widened(rows.x, self._levels, self._indicators)
        self.x_mean_, self.x_scale_ = moments(x, rows.weight)
        self.y_mean_, self.y_scale_ = moments(rows.y, rows.weight)
        x, y = standardised(x, self.x_mean_, self.x_scale_), standardised(rows.y, self.y_mean_, self.y_scale_)
        self._pieces = pieces_of(x[:, : self._levels.count(None)], rows.weight, check_count("n_pieces", self.n_pieces))
        return Rows(np.nan_to_num(x), y, rows.weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def _unit(self) -> float:
        """Return one standard deviation in the unit of the argument `bandwidth`."""
        return float(self.y_scale_[0]) if len(self.y_scale_) == 1 and self.y_scale_[0] > 0 else 1.0

    def _in_deviations(self, labels: Floats) -> float:
        """Return the bandwidth that was asked for in units of standardised labels (n, d_y)."""
        parsed = parse_bandwidth(self.bandwidth)
        if isinstance(parsed, float):
            return max(parsed / self._unit(), MIN_BANDWIDTH) if parsed > 0 else 0.0
        return parsed[1] if parsed[0] == "std" else resolve_bandwidth(labels, parsed)
