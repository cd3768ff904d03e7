"""fastai: a callback that mixes training batches, as its own MixUp does for classes."""

import torch
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.losses import MSELossFlat

from cmixup import CMixup


class CMixupCallback(Callback):
    run_valid = False  # validation batches stay as they are

    def __init__(self, mixing):
        super().__init__()
        self.mixing = mixing

    def before_batch(self):
        self.learn.xb, self.learn.yb = self.mixing(tuple(self.xb), tuple(self.yb))


torch.manual_seed(0)
x = torch.rand(600, 5)
y = torch.exp(x).sum(1, keepdim=True)
rows = list(zip(x, y, strict=True))
loaders = DataLoaders(DataLoader(rows[:400], bs=64, shuffle=True), DataLoader(rows[400:], bs=200), device="cpu")
model = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
mixing = CMixup(bandwidth=("std", 0.3), alpha=2.0, seed=0, labels=y[:400])
learner = Learner(loaders, model, loss_func=MSELossFlat(), cbs=CMixupCallback(mixing))
with learner.no_logging():
    learner.fit(10, lr=0.01)

rmse = learner.validate()[0] ** 0.5
of_mean = (y[400:] - y[:400].mean()).square().mean().sqrt()
print(f"test RMSE {rmse:.3f}, of the mean label {of_mean:.3f}")
