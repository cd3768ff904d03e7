"""For scikit-learn: `TabularRegressor`, networks beside trees or your own model, and `CMixupRegressor`, with C-Mixup.

Nothing else of the library needs scikit-learn (`pip install 'cmixup[sklearn]'`).
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("cmixup.sklearn needs scikit-learn 1.6 or newer: pip install 'cmixup[sklearn]'") from error

from cmixup.sklearn.regressor import CMixupRegressor, TabularRegressor

__all__ = ["CMixupRegressor", "TabularRegressor"]
