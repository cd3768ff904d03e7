"""Lightning: a module that mixes its training batches."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from cmixup import CMixup

generator = torch.Generator().manual_seed(0)
x = torch.rand(600, 5, generator=generator)
y = torch.exp(x).sum(1, keepdim=True)


class Regressor(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        self.mixing = CMixup(bandwidth=("std", 0.3), alpha=2.0, seed=0, labels=y[:400])

    def training_step(self, batch, _):
        mixed_x, mixed_y = self.mixing(*batch)
        return (self.net(mixed_x) - mixed_y).square().mean()

    def test_step(self, batch, _):
        self.log("mse", (self.net(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


torch.manual_seed(0)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer, model = lightning.Trainer(max_epochs=10, accelerator="cpu", **quiet), Regressor()
trainer.fit(model, DataLoader(TensorDataset(x[:400], y[:400]), batch_size=64, shuffle=True))
(scores,) = trainer.test(model, DataLoader(TensorDataset(x[400:], y[400:]), batch_size=200), verbose=False)
of_mean = (y[400:] - y[:400].mean()).square().mean().sqrt()
print(f"test RMSE {scores['mse'] ** 0.5:.3f}, of the mean label {of_mean:.3f}")
