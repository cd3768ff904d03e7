"""Predictions of a whole split."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cmixup.batch import PredictFn
from cmixup.training.loader import Rows


def predict(predict_fn: PredictFn, model: nn.Module, rows: Rows, batch_size: int) -> Tensor:
    """Return predictions `(N, d_y)`, or `(E, N, d_y)` for a stack, in evaluation mode.

    Where rows have many views, a prediction is the mean over those of its row.
    """
    model.eval()
    with torch.no_grad():
        parts = []
        if rows.has_views:
            for row in range(rows.n_rows):
                each = [predict_fn(model, x) for x in rows.all_views(row, batch_size)]
                parts.append(torch.cat(each).mean(dim=0, keepdim=True))
            return torch.cat(parts)
        for start in range(0, rows.n_rows, batch_size):
            index = torch.arange(start, min(start + batch_size, rows.n_rows), device=rows.home)
            parts.append(predict_fn(model, rows.fetch(index.expand(rows.size, -1)).x))
    return torch.cat(parts, dim=-2)
