"""`TabularRegressor`, networks beside trees or any regressor, and `CMixupRegressor`, with the defaults of the paper."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partialmethod
from itertools import zip_longest
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from cmixup.sampling.bandwidth import Bandwidth
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.blend import FITTED_BY, fit_models, fit_options
from cmixup.sklearn.effects import fit_effects
from cmixup.sklearn.fitting import Trained, bandwidths_for, fit_networks
from cmixup.sklearn.frames import as_array
from cmixup.sklearn.held_out import Part, group_codes, held_out_means, parts_of, sides_by_splitter
from cmixup.sklearn.intervals import fit_intervals
from cmixup.sklearn.network import arrays_of
from cmixup.sklearn.options import RandomState, Settings, seed_of, settings_of
from cmixup.sklearn.persistence import read_estimator, write_estimator
from cmixup.sklearn.prediction import MemberMean
from cmixup.sklearn.rows import Rows
from cmixup.sklearn.table import Inputs, fit_table
from cmixup.sklearn.trees import fit_trees, tree_levels, weigh_trees


class TabularRegressor(MemberMean):
    """Five networks with piecewise-linearly encoded columns, blended with trees, or your own model, by held-out rows.

        TabularRegressor(random_state=0).fit(X, y).predict(X_new)

    The prediction is the mean of several members, which each hold other rows out. A member is a fully connected network
    with ReLU, trained by Adam, and gradient-boosted trees of the same rows; all networks are trained as one stack. The
    rows that members hold out choose epochs, the weight of the trees, and whether the networks mix (C-Mixup). Then a
    row is mixed with one of all rows that its network is trained on, drawn with `P(j|i) ~ w_j exp(-|y_i - y_j|^2 / 2
    bandwidth^2)` exactly (Yao et al. 2022, Eq. 6), and the mixed label is fitted. Inputs and labels are standardised.
    Columns that are constant in training are ignored. A missing number is the mean, and has a column that says so. A
    category is a column for each level, or statistics of the labels where it has more than 255
    (`cmixup.sklearn.effects`). Predictions are in label units. Two fits with the same `random_state` are equal on the
    same kind of processor, in threads at a time, too; global random generators are not touched.

    A row of `sample_weight` 2 is the same as the row given twice, one of 0 as no row, and the order of rows does not
    matter. Equal rows are one with their weights' sum. An epoch is as many rows as there are different ones, and row i
    comes in it in proportion to its weight. So only the ratios of the weights matter.

    Args:
        hidden_layer_sizes: units of each hidden layer; () is a linear model of columns and pieces.
        members: networks that are averaged, each with its trees.
        loss: of networks, trees and choices by held-out rows: "squared" for the mean, "absolute" for the
            median, or "quantile".
        quantiles: levels between 0 and 1, rising, that `loss="quantile"` fits (by the pinball loss) and
            `predict_quantiles` returns. They never cross: each member's are sorted.
        target_transform: the scale of fitted labels: None for their own units, "log", "auto" for logarithms where
            all labels are above 0 and these are less than half as skewed, or a transformer of scikit-learn. It is
            fitted to the different labels (N, d_y) without weights, and must rise or fall over those of each output.
            Predictions, quantiles and intervals are in label units. `predict` goes back from the fitted mean, so that
            of logarithms it is nearer to the median.
        bandwidth: s of the kernel. "validated" compares 0, 0.3 standard deviations and infinity on the rows that the
            first member holds out. Another one than 0 is taken if it is better by a standard error, and given up
            unless it is better once the training with 0 has stopped. With `blend=None` it compares 0, 0.1, 0.3, 1 and
            infinity on the rows of all members, up to 1,000 different rows.
            Else what `parse_bandwidth` takes: a number in label units (transformed ones, with `target_transform`),
            "auto", ("std", c), ("fraction", f) or ("median", c). 0 mixes nothing (ERM), infinity mixes any two rows
            (mixup). Several outputs are compared each in its standard deviations, and a number is in these.
        alpha: lambda is drawn from Beta(alpha, alpha) for each row.
        epochs: passes over the training rows, at most.
        batch_size: rows a step.
        lr: learning rate of Adam.
        weight_decay: L2 penalty on weights and biases.
        early_stopping: whether to hold out rows and keep the epoch that predicts them best. Training stops after
            `patience` epochs without a better one, or `(patience + best epoch) / 2` where that is less. Otherwise the
            last epoch is kept, and rows are held out for "validated" and `blend` alone.
        validation_fraction: share of different rows that a member holds out, between 0 and 1; one row at least.
        patience: see `early_stopping`. None is 20 below 20,000 rows of weight above 0, equal ones counted, too. From
            there on it is half the best epoch, from 2 to 10, with four times `batch_size` and twice `lr`. A network
            that has waited goes on twice: with its best weights, 0.3 of its learning rate and a quarter of its
            patience.
        n_pieces: each column of numbers is also given to the networks as so many pieces between its quantiles
            (piecewise-linear encoding, Gorishniy et al. 2022), of mixed rows where networks mix; fewer for small or
            wide tables, see `pieces_of`; 0 for none.
        categorical_features: columns that hold categories, as in `HistGradientBoostingRegressor`: "from_dtype" for
            pandas' category columns, None, or names, positions or a mask. A level that training has not seen is none.
        blend: the models of each member beside its network, trained on the same rows and without mixing: "trees" are
            scikit-learn's `HistGradientBoostingRegressor`. A regressor of its interface, as CatBoost, a pipeline or a
            search, is cloned for three members. It is fitted on X as it is given, with `sample_weight` and `groups`
            where it takes them, to labels in fitted units; its own loss should be `loss`. Of several outputs it has
            all, or one each. Its weight in [0, 1], one for each output, has the least loss on held-out rows (stacking,
            Wolpert 1992). None is the networks alone.
        cv: which rows the members hold out, in turn: a splitter of scikit-learn, a number of folds, or splits. A member
            is trained on the rows that its split trains on. None takes a share of the rows by chance, or whole groups
            (`fit(groups=)`).
        verbose: whether to print each epoch's mean loss, of standardised labels.
        random_state: a whole number, a NumPy generator, or None for a seed from the operating system.
        device: "cpu", "cuda" (or "cuda:1"), or "auto" for the GPU where there is one.
        n_threads: PyTorch's threads in `fit` and `predict`; None leaves their number. One is the default since a step
            of a small network is too short to be shared: threads mostly wait for each other. They gain little for
            several times the processor's time, or lose beside other processes, as in a search with `n_jobs`. The
            number is put back afterwards. With more than one, `predict` hangs in a process that was forked after `fit`,
            as scikit-learn's trees do: load the model in that process. The regressor itself has no `n_jobs`: all
            networks train as one stack, and stacks of other sizes would round otherwise.

    Attributes:
        bandwidth_: s in use: in label units, or in standard deviations where there are several outputs.
        bandwidths_: (k,) those tried, in the same units.
        validation_scores_: (k,) mean loss of single networks with each on the rows held out, of standardised labels;
            of the squared loss its root. NaN where no rows are held out.
        blend_weight_: (d_y,) weight of `blend` beside the networks, between 0 and 1; of quantiles (d_y q,).
        blended_: of three members the fitted regressors of `blend`, one or one for each output; empty with "trees".
        quantiles_: the fitted levels; empty with other losses.
        target_transform_: None, "log" or the fitted transformer.
        best_epoch_: the epoch that each member kept.
        n_epochs_: how many were trained, at most.
        loss_curve_: mean loss of each epoch's mixed rows, of standardised labels, over the members still in training.
        coefs_, intercepts_: float32 matrices (members, in, out) and biases (members, out) of the layers, on
            standardised values.
        x_mean_, x_scale_, y_mean_, y_scale_: float64, moments for standardising; 0 for constant columns. Of x: columns
            of numbers, then those of gaps and levels.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self, hidden_layer_sizes: tuple[int, ...] = (128, 128), *, members: int = 5, loss: str = "squared",
        quantiles: Sequence[float] = (0.05, 0.5, 0.95), target_transform: Any = None,
        bandwidth: Bandwidth = "validated", alpha: float = 2.0, epochs: int = 200,
        batch_size: int = 64, lr: float = 1e-3, weight_decay: float = 0.0, early_stopping: bool = True,
        validation_fraction: float = 0.1, patience: int | None = None, n_pieces: int = 32,
        categorical_features: Any = "from_dtype", blend: Any = "trees", cv: Any = None, verbose: bool = False,
        random_state: RandomState = None, device: str = "cpu", n_threads: int | None = 1,
    ) -> None:  # fmt: skip
        self.hidden_layer_sizes, self.members = hidden_layer_sizes, members
        self.loss, self.quantiles, self.target_transform = loss, quantiles, target_transform
        self.bandwidth, self.alpha = bandwidth, alpha
        self.epochs, self.batch_size, self.lr, self.weight_decay = epochs, batch_size, lr, weight_decay
        self.early_stopping, self.validation_fraction, self.patience = early_stopping, validation_fraction, patience
        self.n_pieces, self.categorical_features = n_pieces, categorical_features
        self.blend, self.cv, self.verbose = blend, cv, verbose
        self.random_state, self.device, self.n_threads = random_state, device, n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Train on rows (n, d) with labels (n,) or (n, d_y).

        Rows that are held out choose epochs and the "validated" bandwidth, and make intervals. Each member holds out
        others by chance; `groups` or the argument `cv` of the estimator say which.

        Args:
            X: real numbers, NaN where one is missing, and categories: an array, a frame or a sparse matrix, which is
                made dense.
            y: real labels in their own units; NaN where one of several outputs is missing. Partners are then compared
                by the outputs that both rows have, and the loss leaves out missing ones.
            sample_weight: (n,) 0 or more, not all 0; equal if left out.
            groups: (n,) of any values; rows of one group are trained on or held out together.

        Raises:
            InputError: an argument cannot be used, or training diverged; a ValueError.
            ValueError: data that scikit-learn refuses.
        """
        X, settings, seed = as_array("X", X), settings_of(self), seed_of(self.random_state)
        codes = group_codes(groups, _num_samples(X))
        patterns, apart = sides_by_splitter(self.cv, X, y, groups, codes)
        table, raw, place = fit_table(self, X, y, sample_weight, apart=apart, group=codes)
        rows = Rows(table.columns_of(raw.x), table.deviations(raw.y), raw.weight, raw.apart)
        settings = settings.of_rows(int((place >= 0).sum()))
        bandwidths = bandwidths_for(self.bandwidth, rows.y, table.unit, settings)
        parts = parts_of(raw, patterns, settings, seed)
        table.effects, effects = fit_effects(raw, rows, table.levels, parts, seed)
        results = fit_networks(rows, parts, bandwidths, settings, pieces=table.pieces, effects=effects, seed=seed)
        self._table, self.quantiles_ = table, list(settings.loss.quantiles)
        self._keep(bandwidths, *results)
        rows = replace(rows, x=raw.x, group=raw.group)
        models: list[list[Any]] = []
        if hasattr(self.blend, "fit") and len(rows) > 1:
            parts, X = parts[:FITTED_BY], X.tocsr() if issparse(X) else X
            member_rows = [np.flatnonzero(np.isin(place, part.train)) for part in parts]
            extras = as_array("sample_weight", sample_weight), as_array("groups", groups)
            options = fit_options(self.blend, *extras)
            models = fit_models(self.blend, X, raw.y[place], member_rows, options, means=table.y_mean)
        first_rows = np.unique(place, return_index=True)[1][-len(rows) :]
        raw_parts = [_safe_indexing(X, first_rows[part.held]) if models else None for part in parts]
        held = [table.inputs_of(rows.x[part.held], raw_part) for part, raw_part in zip(parts, raw_parts, strict=True)]
        self._fit_blend(rows, parts, held, effects=effects, settings=settings, models=models)
        self._held_out = settings.loss, [rows.take(part.held) for part in parts], [inputs.given for inputs in held]
        self._importances = None
        index, predicted = held_out_means(parts, [self._outputs(inputs, m) for m, inputs in enumerate(held)])
        self._intervals = fit_intervals(rows.take(index), predicted, table, settings, seed)
        return self

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

    def _keep(self, bandwidths: Sequence[float], networks: Sequence[Trained], best: int, losses: Floats) -> None:
        """Keep the trained networks; arguments as of `fit_networks`."""
        self.bandwidths_ = np.array(bandwidths) * self._table.unit
        self.bandwidth_ = float(self.bandwidths_[best])
        self.validation_scores_ = np.sqrt(losses) if self.loss == "squared" else losses
        self.best_epoch_ = [network.best_epoch for network in networks]
        curves = list(zip_longest(*(network.losses for network in networks), fillvalue=np.nan))
        self.n_epochs_ = len(curves)
        self.loss_curve_ = torch.tensor(curves, dtype=torch.float64).nanmean(dim=1).tolist()
        self.coefs_, self.intercepts_ = arrays_of([network.weights for network in networks])

    def _fit_blend(
        self, rows: Rows, parts: Sequence[Part], held: Sequence[Inputs], *, effects: Floats, settings: Settings,
        models: list[list[Any]],
    ) -> None:  # fmt: skip
        """Weigh the models of members, or trees, beside the networks on the rows that members hold out."""
        table, options = self._table, settings.loss.tree_options(rows.y.shape[1])
        self._trees, self.blended_, self.blend_weight_ = None, [], np.zeros(len(options))
        if not settings.blend or len(rows) == 1:
            return
        nets = [self._outputs(inputs, member) for member, inputs in enumerate(held)]
        self.blended_ = models
        if not models:
            levels, x = tree_levels(table.levels, effects.shape[2]), table.for_trees(rows.x)
            self._trees = fit_trees(replace(rows, x=x), levels, parts, settings.threads, effects, options=options)
        blended = [self._predict_blend(inputs, [member])[0] for member, inputs in enumerate(held)]
        weight = rows.weight[np.concatenate([part.held for part in parts])]
        self.blend_weight_ = weigh_trees(nets, blended, [rows.y[part.held] for part in parts], weight, settings.loss)
        if not self.blend_weight_.any():
            self._trees = None


class CMixupRegressor(TabularRegressor):
    """Five networks trained with C-Mixup (Yao et al. 2022): `TabularRegressor` that always mixes, and without trees.

        CMixupRegressor(random_state=0).fit(X, y).predict(X_new)

    It has `bandwidth="auto"` and `blend=None` for defaults, and is the same otherwise.
    """

    __init__ = partialmethod(TabularRegressor.__init__, bandwidth="auto", blend=None)
