"""What training rows say of themselves before any network is trained: size, noise, curvature between partners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling import PartnerSampler, diagnose

LEAST_ROWS = 20
MOST_ROWS = 2000  # looked at; more are drawn
COMPONENTS = 300  # of the quick model
FOLDS = 5
NEAR = 0.3  # bandwidth in standard deviations of the label
FLOOR = 1e-3  # of an error in standard deviations, before its logarithm is taken

Predict = Callable[[np.ndarray], np.ndarray]

#: Every trait with what it is.
TRAITS = {
    "log10_rows": "training rows, log10",
    "log10_features": "features after encoding, log10",
    "log10_noise": f"error of a quick kernel model in {FOLDS} folds, label std, log10",
    "log10_neighbour_noise": "difference of nearest neighbours' labels over the root of 2, label std, log10",
    "log10_curvature": f"bias of mixing with partners (bandwidth {NEAR:g} std) where that model is curved, log10",
    "log10_far_curvature": "the same for any partner, log10",
    "skewness": "skewness of the label, absolute",
    "partners": f"share of the rows that are effective partners at {NEAR:g} std",
}


def mixing_bias(predict: Predict, x: np.ndarray, partner: np.ndarray, lam: float = 0.5) -> np.ndarray:
    """Return how far a function at mixed inputs is from its mixed values; 0 where it is straight between them.

    Args:
        predict: takes inputs `(n, d)`, returns `(n, d_y)`.
        x: `(n, d)`.
        partner: places of the partners, `(n,)`.
        lam: weight of a row; its partner has the rest.

    Returns:
        `f(lam x_i + (1 - lam) x_j) - (lam f(x_i) + (1 - lam) f(x_j))`, `(n, d_y)`.
    """
    values = predict(x)
    return predict(lam * x + (1 - lam) * x[partner]) - (lam * values + (1 - lam) * values[partner])


def describe(x: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, float]:
    """Return the traits of training rows, see `TRAITS`.

    Args:
        x: inputs `(n, d)`, standardised.
        y: labels `(n, d_y)`.
        seed: of the rows, folds and partners that are drawn.

    Raises:
        InputError: fewer than 20 rows.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(x) < LEAST_ROWS:
        raise InputError(f"a table must have {LEAST_ROWS} training rows or more, got {len(x)}")
    rng, n_rows = np.random.default_rng(seed), len(x)
    chosen = np.sort(rng.choice(n_rows, min(n_rows, MOST_ROWS), replace=False))
    x, y = x[chosen].astype(np.float64), y[chosen].astype(np.float64)
    std = y.std(axis=0)
    z = (y - y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    predict, out_of_fold = quick_fit(x, z, seed)
    nearest = NearestNeighbors(n_neighbors=2).fit(x).kneighbors(x, return_distance=False)
    other = np.where(nearest[:, 0] == np.arange(len(x)), nearest[:, 1], nearest[:, 0])
    near = PartnerSampler(z, ["std", NEAR]).draw(np.arange(len(z)), rng)
    report = diagnose(z, ["std", NEAR], seed=seed)
    return {
        "log10_rows": float(np.log10(n_rows)),
        "log10_features": float(np.log10(x.shape[1])),
        "log10_noise": _log(out_of_fold - z),
        "log10_neighbour_noise": _log((z - z[other]) / np.sqrt(2)),
        "log10_curvature": _log(mixing_bias(predict, x, near)),
        "log10_far_curvature": _log(mixing_bias(predict, x, rng.permutation(len(x)))),
        "skewness": float(np.abs((z**3).mean(axis=0)).mean()),
        "partners": float(report.effective_fraction),
    }


def quick_fit(x: np.ndarray, z: np.ndarray, seed: int = 0) -> tuple[Predict, np.ndarray]:
    """Fit a smooth model, ridge regression on a random part of a Gaussian kernel.

    Args:
        x: inputs `(n, d)`.
        z: labels `(n, d_y)`.
        seed: of the kernel's part and the folds.

    Returns:
        The model fitted on all rows, and its predictions for each fold when fitted on the others, `(n, d_y)`.
    """
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    kernel = Nystroem(gamma=0.5 / x.shape[1], n_components=min(COMPONENTS, len(x) // 2), random_state=seed)
    model = make_pipeline(kernel, RidgeCV(alphas=np.logspace(-6, 2, 9)))
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    out_of_fold = cross_val_predict(model, x, z, cv=folds).reshape(z.shape)
    model.fit(x, z)

    def predict(rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = model.predict(rows).reshape(len(rows), -1)
        return found

    return predict, out_of_fold


def _log(errors: np.ndarray) -> float:
    return float(np.log10(max(float(np.sqrt(np.square(errors).mean())), FLOOR)))
