"""Views made here."""

import numpy as np

from datasets.common.pose.views import Views


def views(n_objects: int = 3, n_views: int = 31, side: int = 4, seed: int = 0) -> Views:
    """Return views of noise at random azimuths."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n_objects, n_views, side, side), np.uint8)
    y = rng.random((n_objects, n_views), dtype=np.float32)
    return Views(x, y, tuple(f"object {k}" for k in range(n_objects)), {"sources": {}})
