"""How to train: everything of a run that is neither data, model nor method."""

import math
from dataclasses import dataclass, field

from cmixup.errors import InputError, check_choice, check_count, check_positive
from cmixup.training.losses import FORMS, LOSSES, SQUARED, Loss
from cmixup.training.optim import check_optimizer

MOST = 2**31 - 1  # epochs, and rows of a batch
LARGEST_LOG = 700.0  # of a learning rate: float64 ends at 709


@dataclass(frozen=True)
class TrainSettings:
    """How to train. Scores, predictions and bandwidths are in the label's unit whatever the label scaling."""

    epochs: int  #: passes over the training split
    batch_size: int  #: rows a step
    lr: float
    optimizer: str = "adam"  #: or "sgd"
    weight_decay: float = 0.0  #: L2 penalty
    drop_last: bool = False  #: leave out a smaller last batch (released code)
    #: A new random order every epoch, else the rows' own (released code, out of distribution); rows that are drawn by
    #: domain always are.
    shuffle: bool = True
    eval_batch_size: int = 4096  #: rows predicted at once; where rows have many views, views
    #: Splits besides "val" to score after every epoch, "train" or "test", for curves alone: whole splits, not mixed, in
    #: evaluation mode. Selection never looks at them.
    track: list = field(default_factory=list)
    lr_decay: float = 1.0  #: the learning rate is multiplied by this ...
    lr_decay_every: int = 1  #: ... after every so many epochs (`torch.optim.lr_scheduler.StepLR`)
    label_scaling: str = "none"  #: "none", "centre", "standard" or "loss", see `cmixup.training.losses.FORMS`
    patience: int | None = None  #: a run ends after this many epochs without a better selection score
    select: str = "best"  #: the epoch whose weights count: the first with the best validation score, or the "last"
    #: Batches hold as many rows of each of so many training domains (`domain_batches`), as methods for several domains,
    #: which have an option of their own, draw them; 0 draws rows whatever their domain.
    domains_per_batch: int = 0
    loss: str = SQUARED.name  #: or "gaussian", a mean and a variance for every label (`cmixup.training.losses`)
    #: "bfloat16": steps under autocast, while weights, mixing of rows, validation and predictions keep 32 bits.
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "eval_batch_size", "lr_decay_every"):
            check_count(name, getattr(self, name), 1, most=MOST)
        if self.patience is not None:
            check_count("patience", self.patience, 1, most=MOST)
        check_choice("select", self.select, ("best", "last"))
        if self.select == "last" and self.patience is not None:
            raise InputError(f"patience must be null where select is 'last', got {self.patience!r}")
        check_count("domains_per_batch", self.domains_per_batch)
        if self.domains_per_batch and self.batch_size % self.domains_per_batch:
            raise InputError(
                f"batch_size must be a multiple of domains_per_batch = {self.domains_per_batch}, got {self.batch_size}"
            )
        for split in self.track:
            check_choice("track", split, ("train", "test"))
        check_optimizer(self.optimizer, self.lr, self.weight_decay)
        check_positive("lr_decay", self.lr_decay)
        if math.log(self.lr) + math.log(self.lr_decay) * ((self.epochs - 1) // self.lr_decay_every) > LARGEST_LOG:
            raise InputError(f"lr_decay must keep lr finite over {self.epochs} epochs, got {self.lr_decay!r}")
        check_choice("label_scaling", self.label_scaling, FORMS)
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("precision", self.precision, ("float32", "bfloat16"))
        if self.label_scaling == "loss" and self.loss != SQUARED.name:
            raise InputError(f"label_scaling must be standard, centre or none for loss {self.loss}, got 'loss'")

    @property
    def fitted_by(self) -> Loss:
        """The loss by that name."""
        return LOSSES[self.loss]

    def lr_at(self, epoch: int, lr: float | None = None) -> float:
        """Return the learning rate of an epoch, counted from 1, for that of the settings or another one."""
        return (self.lr if lr is None else lr) * self.lr_decay ** ((epoch - 1) // self.lr_decay_every)
