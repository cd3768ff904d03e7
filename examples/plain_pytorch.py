"""A plain PyTorch loop whose partners come from the whole training set."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from cmixup import PairBatchSampler, PairDataset

generator = torch.Generator().manual_seed(0)
x = torch.rand(600, 5, generator=generator)
y = torch.exp(x).sum(1, keepdim=True)
train, test = TensorDataset(x[:400], y[:400]), TensorDataset(x[400:], y[400:])

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

pairs = PairDataset(train, labels=train.tensors[1], bandwidth=("std", 0.3), alpha=2.0)
loader = DataLoader(pairs, batch_sampler=PairBatchSampler(pairs, batch_size=64, seed=0))
for _ in range(10):  # each epoch draws new partners, with any number of workers
    for mixed_x, mixed_y in loader:
        loss = (model(mixed_x) - mixed_y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    errors = model(test.tensors[0]) - test.tensors[1]
rmse, of_mean = errors.square().mean().sqrt(), (y[400:] - y[:400].mean()).square().mean().sqrt()
print(f"test RMSE {rmse:.3f}, of the mean label {of_mean:.3f}")
