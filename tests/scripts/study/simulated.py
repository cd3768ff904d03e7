"""Studies of tables whose effects are known."""

import math

import numpy as np

NOISE = np.geomspace(0.35, 7.0, 30)  # of a split, in percent, like the published tables'


def simulated(
    rng: np.random.Generator, mean: float, spread: float, growth: float, shared: float, *, noise: np.ndarray = NOISE
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Return true effects and the differences of five splits; `shared` is the correlation between splits of a table."""
    relative = noise**growth / (noise**growth).mean()
    true = (mean + spread * rng.standard_normal(len(noise))) * relative
    common, own = rng.standard_normal((len(noise), 1)), rng.standard_normal((len(noise), 5))
    error = (math.sqrt(shared / (1 - shared)) * common + own) * noise[:, None]
    return true, {f"t{t}": [float(d) for d in row] for t, row in enumerate(true[:, None] + error)}
