"""A training run under `torchrun`: each rank prints its losses; tests/adapters/test_distributed.py compares them."""

import json
import sys

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from cmixup import CMixup, PairBatchSampler, PairDataset

ROWS, BATCH, EPOCHS, RANKS = 48, 12, 2, 2


def train(workers: int) -> dict[str, list]:
    """Train for two epochs with batches of 12 over all ranks; return loss and weights of every step, and a draw."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 3, generator=generator)
    y = x.sum(1, keepdim=True)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    model = DistributedDataParallel(net) if world > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pairs = PairDataset(TensorDataset(x, y), y, ("std", 0.3), alpha=2.0)
    loader = DataLoader(pairs, batch_sampler=PairBatchSampler(pairs, BATCH // world, seed=7), num_workers=workers)
    losses, weights = [], []
    for _ in range(EPOCHS):
        for mixed_x, mixed_y in loader:
            loss = (model(mixed_x) - mixed_y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            weights.append(torch.cat([p.detach().flatten() for p in net.parameters()]).tolist())
    lam = CMixup(1.0, seed=3).draw(y).lam.tolist()
    return {"losses": losses, "weights": weights, "lam": lam}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    try:
        numbers = train(workers=int(sys.argv[1]))
        everyone: list = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(everyone, numbers)
        if torch.distributed.get_rank() == 0:
            sys.stdout.write(json.dumps(everyone) + "\n")
    finally:
        torch.distributed.destroy_process_group()
