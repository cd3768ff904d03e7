"""Lightning: a callback that mixes the training batches of any module, which stays as it is."""

import lightning
import torch
from lightning.pytorch.demos.boring_classes import BoringModel
from torch.utils.data import DataLoader, TensorDataset

from cmixup import CMixup


class MixBatches(lightning.Callback):
    """Batches are lists, as default_collate makes them, or dictionaries: they are changed in place."""

    def __init__(self, mixing):
        self.mixing = mixing

    def on_train_batch_start(self, trainer, module, batch, index):
        mixed = self.mixing(batch)
        batch.update(mixed) if isinstance(batch, dict) else batch.__setitem__(slice(None), mixed)


class Regressor(BoringModel):  # stands for your own module: nothing in it knows of mixing
    def training_step(self, batch, _):
        return (self.layer(batch[0]) - batch[1]).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


torch.manual_seed(0)
x = torch.rand(600, 32)
y = x @ torch.linspace(-1, 1, 64).reshape(32, 2)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
callback = MixBatches(CMixup(bandwidth=("std", 0.3), alpha=2.0, seed=0, labels=y[:400]))
trainer, model = lightning.Trainer(max_epochs=10, accelerator="cpu", callbacks=[callback], **quiet), Regressor()
trainer.fit(model, DataLoader(TensorDataset(x[:400], y[:400]), batch_size=64, shuffle=True))
with torch.no_grad():
    rmse = (model(x[400:]) - y[400:]).square().mean().sqrt()
of_mean = (y[400:] - y[:400].mean(0)).square().mean().sqrt()
print(f"test RMSE {rmse:.3f}, of the mean label {of_mean:.3f}")
