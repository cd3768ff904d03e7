"""In which units `TabularRegressor` fits labels: their own, logarithms, or those of a transformer of scikit-learn."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import skew
from sklearn.base import clone

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats

#: Halvings of the way to where a transformer ends. If labels still grow by `GROWTH` after so many, they have no end.
HALVINGS, EARLIER, GROWTH = 60, 40, 1.1
ROUNDED = 1e-6  # of the largest label of an output
MOST_BACK = 0.95  # of the labels come back; the others may be clipped


def check_transform(given: Any) -> None:
    """Raise `InputError` for all but None, "log", "auto" and a transformer that can go back."""
    is_named = given is None or (isinstance(given, str) and given in ("log", "auto"))
    usable = not isinstance(given, type) and all(hasattr(given, f) for f in ("fit", "transform", "inverse_transform"))
    if not (is_named or usable):
        expected = 'None, "log", "auto" or a transformer with inverse_transform'
        raise InputError(f"target_transform must be {expected}, got {format_value(given)}")


@dataclass
class Transform:
    """Brings labels into fitted units, in which they rise as labels do, and back."""

    given: Any  # None, "log" or a fitted transformer
    sign: Any = None  # (d_y,) -1 where the transformer falls
    low: Any = None  # (d_y,) the lowest and the highest fitted label, beyond which a transformer may end
    high: Any = None

    @classmethod
    def fit(cls, given: Any, labels: Floats) -> Self:
        """Return the transform for labels (N, d_y) with gaps, see `check_transform`, or raise `InputError`.

        "auto" is "log" where all labels are above 0 and their logarithms are less than half as skewed, in the mean over
        outputs; else None.
        """
        if given == "auto":
            low = labels <= 0  # NaN is not
            pair = labels, np.log(np.where(low, 1.0, labels))
            raw_skew, log_skew = (np.mean(np.abs(skew(y, nan_policy="omit"))) for y in pair)
            return cls("log" if not low.any() and log_skew < raw_skew / 2 else None)
        if given is None or given == "log":
            return cls(given)
        transform = cls(clone(given).fit(labels), np.ones(labels.shape[1]))
        values = transform.apply(labels)
        for output, (y, fitted) in enumerate(zip(labels.T, values.T, strict=True)):
            steps = np.diff(fitted[np.argsort(y, kind="stable")])
            steps = steps[np.abs(steps) > 1e-9 * (np.nanmax(fitted) - np.nanmin(fitted))]
            if (steps > 0).any() and (steps < 0).any():
                problem = f"{format_value(given)}, which does both over those of output {output}"
                raise InputError(f"target_transform must rise or fall over the labels, got {problem}")
            transform.sign[output] = -1.0 if (steps < 0).any() else 1.0
        values = values * transform.sign
        error = np.abs((returned := transform._inverse(values)) - labels)
        error = np.where(np.isnan(returned) & ~np.isnan(labels), np.inf, error)
        tolerance = np.nanmedian(np.abs(labels - np.nanmedian(labels, axis=0)), axis=0) / 2
        tolerance += ROUNDED * np.nanmax(abs(labels), axis=0)
        for place in np.flatnonzero(~(np.nanquantile(error, MOST_BACK, axis=0, method="lower") <= tolerance)):
            row = np.nanargmax(np.where(np.isnan(error), -1.0, error)[:, place])
            problem = f"{format_value(given)}, which comes back from {labels[row, place]:g} as {returned[row, place]:g}"
            raise InputError(f"target_transform must have an inverse, got {problem}")
        transform.low, transform.high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        return transform

    def apply(self, labels: Floats) -> Floats:
        """Return labels (N, d_y) in fitted units, where all must be finite."""
        if self.given is None:
            return labels
        if self.given == "log" and (labels <= 0).any():
            low = float(np.nanmin(labels))
            raise InputError(f'target_transform="log" must have labels above 0, got {low!r} in y')
        if self.given == "log":
            return np.asarray(np.log(labels))
        values = np.asarray(self.given.transform(labels), dtype=np.float64)
        if values.shape != labels.shape or not np.isfinite(values[~np.isnan(labels)]).all():
            expected = "a finite number for each label of y"
            raise InputError(f"target_transform must give {expected}, got {format_value(values)}")
        return values * self.sign

    def back(self, values: Floats, *, infinite: bool = False) -> Floats:
        """Return fitted values `(..., d_y, q)` in label units.

        Beyond the fitted labels a transformer may end, or turn. There it is the label that it ends with. If labels grow
        without end, it is infinite where that is asked for, with a warning, else that of the last fitted label.
        """
        if self.given is None or self.given == "log":
            return values if self.given is None else np.exp(values)
        rows = np.moveaxis(values, -1, 0)
        shape, rows = rows.shape, rows.reshape(-1, rows.shape[-1])
        labels, last = self._inverse(rows), self._inverse(clipped := rows.clip(self.low, self.high))
        wrong = ~_goes_on(labels, last, rows - clipped)
        if (affected := np.flatnonzero(wrong.any(axis=1))).size:
            inside, outside, earlier = clipped[affected], np.where(wrong, rows, clipped)[affected], last[affected]
            for halving in range(HALVINGS):
                middle = (inside + outside) / 2
                goes_on = _goes_on(reached := self._inverse(middle), last[affected], middle - clipped[affected])
                inside, outside = np.where(goes_on, middle, inside), np.where(goes_on, outside, middle)
                earlier = np.where(goes_on & (halving < EARLIER), reached, earlier)
            end = self._inverse(inside)
            endless = wrong[affected] & (np.abs(end - last[affected]) > GROWTH * np.abs(earlier - last[affected]))
            beyond = np.copysign(np.inf, rows[affected] - clipped[affected]) if infinite else last[affected]
            labels[affected] = np.where(wrong[affected], np.where(endless, beyond, end), labels[affected])
            if infinite and endless.any():
                problem = f"{int(endless.sum())} of {labels.size} ends lie where target_transform reaches no label"
                warnings.warn(f"{problem}: they are infinite", UserWarning, stacklevel=4)
        return np.moveaxis(labels.reshape(shape), 0, -1)

    def _inverse(self, rows: Floats) -> Floats:
        """Return fitted values (n, d_y) as labels, NaN where the transformer has none."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return np.array(self.given.inverse_transform(rows * self.sign), dtype=np.float64)
            except (ArithmeticError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"target_transform must have an inverse, got {format_value(error)}") from None


def _goes_on(labels: Floats, last: Floats, way: Floats) -> Any:
    """Return whether labels are numbers that lie beyond the last fitted ones, on the way that their values took."""
    with np.errstate(invalid="ignore"):
        return np.isfinite(labels) & ((labels - last) * np.sign(way) >= 0)
