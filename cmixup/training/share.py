"""The rows and draws of an epoch, and this process's share of them where several train one run.

Every process takes as many rows of every batch; a last batch is cut to a multiple of their number. Their order is the
same for all, what is drawn for the rows is each one's own, and gradients are averaged (`cmixup.optim.descend`): where
nothing is drawn, the steps are those of one process, up to rounding. What a method does within a batch (pairs inside
it, one lambda for all, clusters) it does within a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import join_draws
from cmixup.data import RegressionData, Sampled
from cmixup.distributed import average, distributed_place
from cmixup.errors import InputError
from cmixup.methods.base import Method
from cmixup.order import EpochBatches, domain_batches
from cmixup.seeding import Streams
from cmixup.training.settings import TrainSettings


@dataclass
class Run:
    """One run of a stack: its data, its method, its freshly initialised model and its random streams.

    `lr` and `weight_decay` replace those of the settings, so that runs of several rates train as one stack.
    """

    data: RegressionData
    method: Method
    model: nn.Module
    streams: Streams
    lr: float | None = None
    weight_decay: float | None = None


def check_share(method: Method, settings: TrainSettings, *, saves: bool) -> int:
    """Return the rows of a full batch on this process.

    Raises:
        InputError: several processes with a method whose steps are more than the gradient of a mean over rows, a batch
            size that their number does not divide, or checkpoints.
    """
    _, world = distributed_place()
    if world == 1:
        return settings.batch_size
    name = type(method).__name__
    if method.tasks or method.domains or not method.shareable:
        raise InputError(f"method {name} trains in one process: its steps are no mean over rows; got {world} processes")
    if settings.batch_size % world:
        raise InputError(f"batch_size must be a multiple of the {world} processes, got {settings.batch_size}")
    if saves:
        raise InputError(f"checkpoint_every must be 0 with several processes, got {world} of them")
    return settings.batch_size // world


def share_of(order: EpochBatches) -> EpochBatches:
    """Return the rows that this process takes of every batch, as many as every other one."""
    rank, world = distributed_place()
    if world == 1:
        return order
    sizes = order.sizes // world
    parts = [rows[rank * size : (rank + 1) * size] for rows, size in zip(order.batches(), sizes, strict=True) if size]
    return EpochBatches(np.concatenate(parts), sizes[sizes > 0])


def draw_epoch(run: Run, settings: TrainSettings) -> tuple[EpochBatches, dict[str, np.ndarray]]:
    """Return the rows of the next epoch that this process takes, and the draws for them.

    Batches are the method's own, or have as many rows of each domain.

    Raises:
        InputError: batches of domains for a method that makes other batches, or more domains than there are.
    """
    method, train, size, domains = run.method, run.data.train, settings.batch_size, settings.domains_per_batch
    if not domains or method.domains:
        order = method.order(train, size, run.streams, drop_last=settings.drop_last, shuffle=settings.shuffle)
    elif type(method).order is not Method.order:
        raise InputError(f"domains_per_batch must be 0 for {type(method).__name__}, which makes batches of its own")
    else:
        order = domain_batches(train.domain.numpy(), domains, size // domains, run.streams.order)
    order = share_of(order)
    return order, draws_of(run, order)


def agree(model: nn.Module, losses: Sequence[Tensor]) -> Tensor:
    """Return the losses of an epoch, `(n_batches, ...)`, as means over the processes; so become the model's buffers."""
    together = torch.stack(list(losses))
    if distributed_place()[1] > 1:
        average([together, *(buffer for buffer in model.buffers() if buffer.is_floating_point())])
    return together


def draws_of(run: Run, order: EpochBatches) -> dict[str, np.ndarray]:
    """Return the method's draws, and which view of every row and partner is read, where inputs have several.

    Views have a stream of their own, and partners' are drawn even if there are none: every method sees the same views.
    """
    drawn = run.method.draw(order, run.streams)
    if not isinstance(run.data.train.x, Sampled):
        return drawn
    view, partner_view = run.streams.views.integers(2**63, size=(2, len(order.index)))
    views = {"view": view, "partner_view": partner_view}
    if "other_partner" in drawn:
        views["other_partner_view"] = run.streams.views.integers(2**63, size=len(order.index))
    return join_draws({f"method {type(run.method).__name__}": drawn, "the trainer": views})


def broadcast(value: object) -> object:
    """Return the argument of rank 0, on all processes."""
    box = [value]
    torch.distributed.broadcast_object_list(box)
    return box[0]
