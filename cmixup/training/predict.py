"""Predictions of a whole split."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cmixup.batch import PredictFn
from cmixup.losses import SQUARED, Loss
from cmixup.training.loader import BatchLoader


def predict(
    predict_fn: PredictFn, model: nn.Module, rows: BatchLoader, batch_size: int, loss: Loss = SQUARED
) -> Tensor:
    """Return predictions in label units, `(N, d_y)`, or `(E, N, d_y)` for a stack, in evaluation mode.

    Where rows have many views, a prediction is the mean over those of its row. A loss that fits variances gives
    `(..., N, 2 d_y)`, standard deviations after the means.
    """
    model.eval()
    with torch.no_grad():
        if rows.has_views:
            means = []
            for row in range(rows.n_rows):
                views = [predict_fn(model, x) for x in rows.all_views(row, batch_size)]
                means.append(torch.cat(views).mean(dim=0, keepdim=True))
            return loss.to_labels(torch.cat(means), rows.labels)
        outputs = torch.cat([predict_fn(model, x) for x in rows.in_order(batch_size)], dim=-2)
        return loss.to_labels(outputs, rows.labels)
