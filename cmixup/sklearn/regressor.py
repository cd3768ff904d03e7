"""`CMixupRegressor`: a network trained with C-Mixup, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from itertools import zip_longest
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_array, check_is_fitted, validate_data
from torch import Tensor

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
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sklearn.columns import categorical_columns, coded, indicators_of, levels_of, pieces_of, widened
from cmixup.sklearn.fitting import Settings, choose, threads, train_networks
from cmixup.sklearn.frames import check_numbers
from cmixup.sklearn.held_out import (
    Part,
    check_validation,
    group_codes,
    parts_by_chance,
    parts_by_group,
    parts_by_sides,
    sides_by_splitter,
)
from cmixup.sklearn.intervals import Residuals, check_coverage, interval, residuals_of
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
        cv: which rows the members hold out, in turn: a splitter of scikit-learn, a number of folds, or splits. A member
            is trained on the rows that its split trains on. None takes a share of the rows by chance, or whole groups
            (`fit(groups=)`).
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
        cv: Any = None,
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
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state
        self.device = device
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
    ) -> Self:
        """Train on rows (n, d) with labels (n,) or (n, d_y).

        Rows that are held out choose epochs and "auto"'s bandwidth, and make the intervals. Each member holds out
        others by chance; `X_val`, `groups` or the argument `cv` of the estimator say which.

        Args:
            X: real numbers, NaN where one is missing, and categories: an array, a frame or a sparse matrix, which is
                made dense.
            y: real finite labels in their own units.
            sample_weight: (n,) 0 or more, not all 0; equal if left out.
            X_val: (k, d) rows that every member holds out, and that none is trained on.
            y_val: their labels, (k,) or (k, d_y) as `y`.
            groups: (n,) of any values; rows of one group are trained on or held out together.

        Raises:
            InputError: an argument cannot be used, or training diverged; a ValueError.
            ValueError: data that scikit-learn refuses.
        """
        settings, share = self._settings(), self._share()
        members, auto = check_count("members", self.members, 1), self._auto()
        given = check_validation(X_val, y_val, groups=groups, cv=self.cv)
        seed = seed_of(self.random_state)
        apart = codes = None if groups is None else group_codes(groups, _num_samples(X))
        if self.cv is not None:
            patterns, apart = sides_by_splitter(self.cv, X, y, groups, codes)
        raw = self._read(X, y, sample_weight, apart)
        rows = self._encoded(raw)
        if given:
            n, raw = len(rows), self._with_validation(raw, X_val, y_val)
            rows = self._standardised(raw)
            parts = [Part(np.arange(n), np.arange(n, len(rows)))] * members
        elif self.cv is not None:
            parts = parts_by_sides(patterns[raw.apart], members)
        elif not (auto or settings.early_stopping) or len(rows) == 1:
            parts = [Part(np.arange(len(rows)), np.arange(0))] * members
        elif codes is not None:
            parts = parts_by_group(raw.apart, rows.weight, members, share, seed)
        else:
            parts = parts_by_chance(len(rows), members, share, seed)
        trained = rows if not given else rows.take(parts[0].train)
        few = len(trained) <= CROSS_VALIDATED
        tried = list(BANDWIDTHS if few else BANDWIDTHS[::2]) if auto else [self._in_deviations(trained.y)]
        compared = members if few or not auto else 1
        with warnings.catch_warnings():
            if auto:  # some of what it tries may mix nothing
                warnings.filterwarnings("ignore", "bandwidth .* leaves every row its own partner")
            nets = [(bandwidth, member) for bandwidth in tried for member in range(compared)]
            found = train_networks(rows, parts, nets, settings, pieces=self._pieces, seed=seed)
            errors = np.concatenate([network.errors for network in found]).reshape(len(tried), -1)
            weight = rows.weight[np.concatenate([part.held for part in parts[:compared]])]
            best = choose(errors, weight) if auto else 0
            found = found[best * compared : (best + 1) * compared]
            nets = [(tried[best], member) for member in range(compared, members)]
            found += train_networks(rows, parts, nets, settings, pieces=self._pieces, seed=seed) if nets else []
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
        held = [self._of_members(rows.x[part.held], member) for member, part in enumerate(parts)]
        found_sizes = residuals_of(rows.weight, parts, held, raw.y)
        self._residuals, self._residual_weights, self._residual_members = found_sizes
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return predictions for rows (n, d) in label units, (n,) or (n, d_y) float64 as the labels were.

        Args:
            X: rows as in `fit`.
            return_std: whether to return the members' standard deviation, too, of the same shape: how much the networks
                disagree, which is less than how far labels scatter. For the latter see `predict_interval`.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
            ValueError: rows that scikit-learn refuses, such as another number of features.
        """
        check_is_fitted(self)
        spread = check_flag("return_std", return_std)
        parts = self._outputs(self._inputs(X))
        predicted = np.concatenate([part.mean(dim=0).numpy() for part in parts]) * self.y_scale_ + self.y_mean_
        if not spread:
            return self._shaped(predicted)
        deviation = np.concatenate([part.std(dim=0, correction=0).numpy() for part in parts]) * self.y_scale_
        return self._shaped(predicted), self._shaped(deviation)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the lower and upper ends of intervals that hold a new label in `coverage` of cases, (n, 2, ...).

        The ends come from the errors on rows that members held out, by CV+ (Barber et al. 2021; see
        `cmixup.sklearn.intervals`). Its theorem promises 2 coverage - 1 for new rows like those of `fit`; in practice
        it is about `coverage`. With `groups=` in `fit`, it is meant for rows of new groups.

        Args:
            X: rows as in `fit`.
            coverage: between 0 and 1.

        Returns:
            (n, 2) float64 in label units, or (n, 2, d_y) where labels were (n, d_y); each output has its own interval.

        Raises:
            InputError: `coverage` is not between 0 and 1, or `fit` held out no rows, or too few for it.
        """
        check_is_fitted(self)
        residuals = Residuals(self._residuals, self._residual_weights, self._residual_members)
        share = check_coverage(coverage, residuals)
        each = torch.cat(self._outputs(self._inputs(X)), dim=1).numpy() * self.y_scale_ + self.y_mean_
        ends = np.stack(interval(residuals, each, share), axis=1)
        return ends[:, :, 0] if self._one_dimensional else ends

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file of arrays and JSON (NumPy's npz), without pickle; see `load`.

        A splitter as `cv` is left out, since it may be any object; only another `fit` would read it.

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

    def _inputs(self, X: Any) -> Floats:
        """Return rows as the networks take them."""
        if any(levels is not None for levels in self._levels):
            validate_data(self, X, reset=False, skip_check_array=True)
        X = validate_data(self, coded(X, self._levels), reset=False, **NUMBERS)
        x = widened(check_size("X", X), self._levels, self._indicators)
        return np.nan_to_num(standardised(x, self.x_mean_, self.x_scale_))

    def _outputs(self, inputs: Floats, member: int | None = None) -> list[Tensor]:
        """Return what all members, or one, predict for inputs, in deviations: `(M, n, d_y)` float64 in parts of n."""
        device, places = device_of(self.device), slice(None) if member is None else slice(member, member + 1)
        coefs, intercepts = ([layer[places] for layer in layers] for layers in (self.coefs_, self.intercepts_))
        networks = [network.to(device) for network in networks_of(coefs, intercepts, self._pieces)]
        with threads(self.n_threads), torch.inference_mode():
            return [
                torch.stack([network(part.to(device)) for network in networks]).cpu()
                for part in torch.split(torch.from_numpy(inputs), PREDICTED_AT_ONCE)
            ]

    def _of_members(self, inputs: Floats, member: int) -> Floats:
        """Return what a member predicts for inputs, (n, d_y) in label units."""
        return (
            np.concatenate([part[0].numpy() for part in self._outputs(inputs, member)]) * self.y_scale_ + self.y_mean_
        )

    def _shaped(self, values: Floats) -> Floats:
        return values[:, 0] if self._one_dimensional else values

    def _read(self, X: Any, y: Any, sample_weight: Any, apart: Ints | None = None) -> Rows:
        """Return the different rows of a table, categories as numbers of their levels."""
        check_numbers(y)
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
        return merged(check_size("X", X), labels, weight, apart)

    def _with_validation(self, rows: Rows, X_val: Any, y_val: Any) -> Rows:
        """Return rows with those of `X_val` behind them, each of weight 1.

        Raises:
            InputError: other columns or outputs than `rows` have, or no rows.
        """
        try:
            if any(levels is not None for levels in self._levels):
                validate_data(self, X_val, reset=False, skip_check_array=True)
            x = check_size("X_val", validate_data(self, coded(X_val, self._levels), reset=False, **NUMBERS))
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"X_val must have rows, and the columns of X: {error}") from None
        try:
            y = check_array(y_val, ensure_2d=False, dtype=np.float64, input_name="y_val")
        except (TypeError, ValueError) as error:
            raise InputError(f"y_val must be labels of {len(x)} rows: {error}") from None
        outputs = () if self._one_dimensional else (rows.y.shape[1],)
        if y.shape != (len(x), *outputs):
            raise InputError(f"y_val must have shape {(len(x), *outputs)} as X_val and y, got {y.shape}")
        y = check_size("y_val", y.reshape(len(x), -1))
        weight = np.concatenate([rows.weight, np.ones(len(x))])
        return Rows(np.concatenate([rows.x, x]), np.concatenate([rows.y, y]), weight)

    def _encoded(self, rows: Rows) -> Rows:
        """Fit to rows how inputs and labels become those of the networks, and return them as such."""
        self._indicators = indicators_of(rows.x, self._levels)
        x = widened(rows.x, self._levels, self._indicators)
        self.x_mean_, self.x_scale_ = moments(x, rows.weight)
        self.y_mean_, self.y_scale_ = moments(rows.y, rows.weight)
        x = standardised(x, self.x_mean_, self.x_scale_)
        self._pieces = pieces_of(x[:, : self._levels.count(None)], rows.weight, check_count("n_pieces", self.n_pieces))
        return self._standardised(rows)

    def _standardised(self, rows: Rows) -> Rows:
        """Return rows as the networks take them, with labels in standard deviations."""
        x = standardised(widened(rows.x, self._levels, self._indicators), self.x_mean_, self.x_scale_)
        return Rows(np.nan_to_num(x), standardised(rows.y, self.y_mean_, self.y_scale_), rows.weight, rows.apart)

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
