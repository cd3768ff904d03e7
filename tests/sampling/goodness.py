"""Label sets and the chi-square test that the sampler tests share."""

import numpy as np
from scipy.special import chdtrc


def label_sets():
    """Name -> labels, (N,) or (N, d)."""
    rng = np.random.default_rng(20)
    normal = rng.normal(size=90)
    wide = rng.normal(size=(80, 8))
    scales = np.repeat([1e-3, 1e-1, 1e1, 1e3], 20)
    return {
        "normal": normal,
        "uniform": rng.random(70),
        "lognormal": np.exp(2 * rng.normal(size=80)),
        "integers": rng.integers(0, 6, 90),
        "duplicates": np.repeat(rng.normal(size=12), 6),
        "clusters": rng.normal(size=80) * scales,
        "outliers": np.append(normal[:60], [1e6, -1e6, 1e6 + 0.5]),
        "offset": 1e8 + rng.normal(size=60),
        "float32": rng.normal(size=70).astype(np.float32),
        "constant": np.full(40, 3.5),
        "one": np.array([2.0]),
        "two": np.array([0.0, 1.0]),
        "three": np.array([5.0, 5.0, 6.0]),
        "plane": rng.normal(size=(70, 2)),
        "wide": wide,
        "wide_float32": wide.astype(np.float32),
        "wide_offset": 1e8 + wide,
        "wide_outlier": np.append(wide, np.full((1, 8), 1e6), axis=0),
        "wide_integers": rng.integers(0, 3, (80, 4)),
        "wide_clusters": rng.normal(size=(80, 5)) * scales[:, None],
        "wide_constant": np.ones((20, 3)),
    }


def typical_spread(labels):
    """Spread that outliers do not move, never 0: half the distance between the quartiles, pooled."""
    low, high = np.quantile(np.asarray(labels, float) - np.median(labels, axis=0), [0.25, 0.75])
    return (high - low) / 2 or 1.0


def anchors_of(labels):
    """Indices of the smallest, median and largest label (by the first dimension)."""
    order = np.argsort(labels if labels.ndim == 1 else labels[:, 0], kind="stable")
    return [int(order[0]), int(order[len(order) // 2]), int(order[-1])]


def exact_row(labels, bandwidth, anchor):
    """P(.|anchor) by definition, in plain NumPy: shares no code with the library."""
    y = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)
    d = np.sqrt(((y - y[anchor]) ** 2).sum(axis=1))
    weight = (d == 0).astype(float) if bandwidth == 0 else np.exp(-((d / bandwidth) ** 2) / 2)
    return weight / weight.sum()


def p_of_rows(drawn, rows):
    """Chi-square p-value of draws (R, N), a partner for each row of P (N, N), by how likely partners are in their row.

    Summed from the most probable partner on, the probabilities up to the one that was drawn are uniform in [0, 1].
    """
    row = np.arange(len(rows))
    assert rows[row, drawn].all(), "a partner of probability 0 was drawn"
    order = np.argsort(-rows, axis=1, kind="stable")
    above = np.take_along_axis(rows, order, axis=1).cumsum(axis=1)[row, np.argsort(order, axis=1)[row, drawn]]
    place = above - rows[row, drawn] * np.random.default_rng(0).random(drawn.shape)
    counts = np.bincount((16 * place).astype(int).clip(0, 15).ravel(), minlength=16)
    return chdtrc(15, ((counts - counts.mean()) ** 2 / counts.mean()).sum())


def p_value(drawn, row):
    """Chi-square p-value of draws (n,) against probabilities (N,); None if all is one bin.

    Rare partners are pooled. Draws of probability 0 fail at once.
    """
    counts = np.bincount(np.asarray(drawn), minlength=len(row))
    assert len(counts) == len(row)
    assert counts[row == 0].sum() == 0, "a partner of probability 0 was drawn"
    order = np.argsort(-row, kind="stable")
    expected, counts = row[order] * counts.sum(), counts[order]
    large = int((expected >= 8).sum())
    expected = np.append(expected[:large], expected[large:].sum())
    counts = np.append(counts[:large], counts[large:].sum())
    if expected[-1] < 8:
        if large == 0 or len(expected) < 2:
            return None
        expected[-2] += expected[-1]
        counts[-2] += counts[-1]
        expected, counts = expected[:-1], counts[:-1]
    if len(expected) < 2:
        return None
    expected *= counts.sum() / expected.sum()
    return chdtrc(len(counts) - 1, ((counts - expected) ** 2 / expected).sum())
