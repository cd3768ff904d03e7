"""Predictions of a fitted ensemble: the mean of its members, their spread, and intervals from held-out rows."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.blend import predict_models
from cmixup.sklearn.effects import joined
from cmixup.sklearn.fitting import threads
from cmixup.sklearn.frames import as_frame, as_labels
from cmixup.sklearn.intervals import Intervals, check_coverage
from cmixup.sklearn.losses import Loss
from cmixup.sklearn.network import predict_networks
from cmixup.sklearn.options import device_of
from cmixup.sklearn.rows import Rows
from cmixup.sklearn.table import Inputs, Table
from cmixup.sklearn.trees import Trees, predict_trees, tree_levels

PREDICTED_AT_ONCE = 1 << 14


class MemberMean(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Predicts by the mean of members, each a network and trees beside it; `fit` of a subclass trains them.

    Its arguments and attributes are described in `TabularRegressor`.
    """

    loss: str
    device: str
    n_threads: int | None
    coefs_: list[np.ndarray]
    intercepts_: list[np.ndarray]
    blend: Any
    blend_weight_: Floats
    blended_: list[list[Any]]
    quantiles_: Sequence[float]
    n_features_in_: int
    _table: Table
    _trees: Trees | None
    _intervals: Intervals
    _held_out: tuple[Loss, list[Rows], list[Any]] | None
    _importances: Floats | None
    x_mean_, x_scale_ = (property(attrgetter(f"_table.{name}")) for name in ("x_mean", "x_scale"))
    y_mean_, y_scale_ = (property(attrgetter(f"_table.{name}")) for name in ("y_mean", "y_scale"))
    target_transform_ = property(attrgetter("_table.transform.given"))

    def predict(self, X: Any) -> Floats:
        """Return predictions for rows (n, d) in label units, (n,) or (n, d_y) float64 as the labels were.

        Of quantiles it is the median, between its neighbours on a line, or the nearest one where all are on one side.

        Args:
            X: rows as in `fit`.

        Raises:
            sklearn.exceptions.NotFittedError: before `fit`.
            ValueError: rows that scikit-learn refuses, such as another number of features.
        """
        check_is_fitted(self)
        table = self._table
        outputs = self._outputs(table.inputs(self, X))
        return table.shaped(table.in_label_units(self._median(outputs))[..., 0])

    def predict_quantiles(self, X: Any) -> Floats:
        """Return the quantiles of labels for rows (n, d), (n, q) or (n, d_y, q) float64, rising from each to the next.

        Args:
            X: rows as in `fit`.

        Raises:
            InputError: `fit` had another loss than "quantile".
        """
        check_is_fitted(self)
        if not self.quantiles_:
            raise InputError(f'loss must be "quantile" for predict_quantiles, got {format_value(self.loss)}')
        table = self._table
        outputs = self._outputs(table.inputs(self, X))
        labels = table.in_label_units(table.by_label(outputs), infinite=True)
        return table.shaped(np.maximum.accumulate(labels, axis=-1))  # a transformer may turn where it ends

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions, the mean over outputs, each over the rows whose label is there.

        Args:
            X: rows as in `fit`.
            y: their labels; NaN where one of several outputs is missing.
            sample_weight: (n,) 0 or more; equal if left out.

        Raises:
            ValueError: rows or labels that scikit-learn refuses, such as an output with fewer than two labels.
        """
        labels = as_labels("y", y)
        if np.ndim(labels) != 2 or labels.dtype.kind != "f" or not np.isnan(labels).any():
            return float(super().score(X, labels, sample_weight))
        weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
        outputs = zip(labels.T, self.predict(X).T, ~np.isnan(labels.T), strict=True)
        return float(np.mean([r2_score(y[k], mean[k], sample_weight=weight[k]) for y, mean, k in outputs]))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the lower and upper ends of intervals that hold a new label in `coverage` of cases, (n, 2, ...).

        The ends come from the errors on rows that members held out, and their width follows X where that makes the
        intervals of these rows better (see `cmixup.sklearn.intervals`). `coverage` is for new rows like those of `fit`,
        on average; with `groups=` in `fit`, for rows of new groups.

        Args:
            X: rows as in `fit`.
            coverage: between 0 and 1.

        Returns:
            (n, 2) float64 in label units, or (n, 2, d_y) where labels were (n, d_y); each output has its own interval.
            An end beyond all that `target_transform` goes back to is infinite, with a warning.

        Raises:
            InputError: `coverage` is not between 0 and 1, or `fit` held out no rows, or too few for it.
        """
        check_is_fitted(self)
        share, table = check_coverage(coverage, self._intervals.residuals), self._table
        inputs = table.inputs(self, X)
        outputs = self._outputs(inputs)
        levels, by_label = tree_levels(table.levels, outputs.shape[1]), table.by_label(outputs)
        width = by_label[..., -1] - by_label[..., 0]
        half = self._intervals.widths(share, np.hstack([inputs.x, outputs]), levels, width)
        ends = np.stack([by_label[..., 0] - half, by_label[..., -1] + half], axis=-1)
        ends = np.sort(table.in_label_units(ends, infinite=True), axis=-1)  # quantiles that are drawn in may cross
        return ends[:, 0] if table.one_dimensional else ends.transpose(0, 2, 1)

    @property
    def feature_importances_(self) -> Floats:
        """(d,) share of each column in the loss that permuting it adds on held-out rows; computed when first read.

        A file of `save` keeps them if they were read before, but no rows to compute them from.

        Raises:
            AttributeError: before `fit`, after one that held out no rows, or after `load` of a file without them.
        """
        check_is_fitted(self)
        if self._importances is None:
            if self._held_out is None or not all(map(len, self._held_out[1])):
                raise AttributeError("feature_importances_ needs rows that fit held out; save keeps none of these")
            loss, added_loss = self._held_out[0], np.zeros(self.n_features_in_)
            for member, (rows, raw_rows) in enumerate(zip(*self._held_out[1:], strict=True)):

                def gain(_: Any, x: Any, y: Floats, sample_weight: Floats, member: int = member) -> float:
                    inputs = self._table.inputs(self, x) if self.blended_ else self._table.inputs_of(x)
                    outputs = torch.from_numpy(self._outputs(inputs, member))
                    return -float(sample_weight @ loss.of_rows(outputs, torch.from_numpy(y)).numpy())

                options: Any = {"scoring": gain, "sample_weight": rows.weight, "random_state": 0}
                x = raw_rows if self.blended_ else rows.x
                x = as_frame(x) if issparse(x) or hasattr(x, "columns") else x
                added_loss += permutation_importance(self, x, rows.y, **options).importances_mean
            added_loss = added_loss.clip(min=0)
            self._importances = added_loss / (added_loss.sum() or 1.0)
        return self._importances

    def _outputs(self, inputs: Inputs, member: int | None = None) -> Floats:
        """Return the mean prediction of all members, or that of one, for inputs, in deviations: `(n, d_y q)`."""
        members = list(range(len(self.coefs_[0]))) if member is None else [member]
        coefs, intercepts = ([layer[members] for layer in layers] for layers in (self.coefs_, self.intercepts_))
        device, blended, outputs = device_of(self.device), self._predict_blend(inputs, members), []
        with threads(self.n_threads), torch.inference_mode():
            for start in range(0, max(1, len(inputs.z)), PREDICTED_AT_ONCE):
                part = slice(start, start + PREDICTED_AT_ONCE)
                z = torch.from_numpy(joined(inputs.z[part], inputs.effects[members, part])).to(device)
                values = predict_networks(coefs, intercepts, self._table.pieces, z).cpu()
                if blended is not None:
                    values += (torch.from_numpy(blended[:, part]) - values) * torch.from_numpy(self.blend_weight_)
                if self.quantiles_:  # none crosses another, and the loss is no higher (Chernozhukov et al. 2010)
                    values = self._table.by_label(values).sort(dim=-1).values.reshape(values.shape)
                outputs.append(values.mean(dim=0).numpy())
        return np.concatenate(outputs)

    def _predict_blend(self, inputs: Inputs, members: Sequence[int]) -> Any:
        """Return the predictions of members' trees or models, in deviations: `(M, n, d_y q)`; None without any."""
        if self.blended_:
            models = [self.blended_[member % len(self.blended_)] for member in members]
            return self._table.deviations(predict_models(models, inputs.given))
        if self._trees is None:
            return None
        predicted, levels = [], tree_levels(self._table.levels, inputs.effects.shape[2])
        for member in members:
            x = joined(inputs.x, inputs.effects[[member]])
            predicted.append(predict_trees(self._trees, x, levels, [member], self.n_threads or 1)[0])
        return np.stack(predicted)

    def _median(self, outputs: Any) -> Any:
        """Return outputs `(..., d_y q)` as `(..., d_y, 1)`: the median of quantiles, or the one number of a label."""
        levels, by_label = self.quantiles_ or [0.5], self._table.by_label(outputs)
        weights = [float(np.interp(0.5, levels, unit)) for unit in np.eye(len(levels))]
        return sum(weight * by_label[..., k : k + 1] for k, weight in enumerate(weights) if weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        if hasattr(self.blend, "fit") and not isinstance(self.blend, type):
            blend_tags = get_tags(self.blend).input_tags
            tags.input_tags.allow_nan, tags.input_tags.sparse = blend_tags.allow_nan, blend_tags.sparse
        return tags
