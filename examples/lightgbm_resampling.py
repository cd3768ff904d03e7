"""LightGBM (XGBoost and scikit-learn's trees alike): one mixed row beside each given one."""

import lightgbm
import numpy as np
import pandas as pd

from cmixup.sklearn import CMixupResampler

rng = np.random.default_rng(0)
table = pd.DataFrame({"size": rng.random(600), "rooms": rng.integers(1, 9, 600), "town": rng.integers(0, 5, 600)})
price = np.sin(4 * table["size"]) + 0.2 * table["rooms"] + 0.5 * (table["town"] == 3) + 0.2 * rng.normal(size=600)
table["town"] = table["town"].astype("category")  # of one of both rows; sizes are mixed, rooms mixed and rounded

resampler = CMixupResampler(ratio=1.0, bandwidth=("std", 0.2), alpha=2.0, random_state=0)
x, y = resampler.fit_resample(table[:400], price[:400])
model = lightgbm.LGBMRegressor(n_estimators=60, num_threads=1, verbose=-1).fit(x, y)

rmse = np.sqrt(np.mean((model.predict(table[400:]) - price[400:]) ** 2))
print(f"test RMSE {rmse:.3f}, of the mean label {np.std(price[400:]):.3f}")
