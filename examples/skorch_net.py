"""skorch: mixing as the `collate_fn` of training batches, searched with GridSearchCV."""

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetRegressor

from cmixup import CMixup

torch.set_num_threads(1)  # small networks: more threads wait for each other
rng = np.random.default_rng(0)
x = rng.random((600, 5), dtype=np.float32)
y = np.exp(x).sum(axis=1, keepdims=True)

net = NeuralNetRegressor(
    lambda: torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)),
    optimizer=torch.optim.Adam, lr=0.01, max_epochs=10, batch_size=64, train_split=None, verbose=0,
    iterator_train__shuffle=True,
)  # fmt: skip
grid = {"iterator_train__collate_fn": [CMixup(bandwidth=s, alpha=2.0, seed=0) for s in (0.1, 0.5, float("inf"))]}
torch.manual_seed(0)
search = GridSearchCV(net, grid, cv=2, scoring="neg_root_mean_squared_error").fit(x[:400], y[:400])

rmse = np.sqrt(np.mean((search.predict(x[400:]) - y[400:]) ** 2))
print("best", search.best_params_)
print(f"test RMSE {rmse:.3f}, of the mean label {np.sqrt(np.mean((y[400:] - y[:400].mean()) ** 2)):.3f}")
