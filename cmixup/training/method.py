"""The contract between a method and the trainer.

A method says which rows make an epoch (`order`), and draws all randomness of the epoch at once (`draw`). It applies
this in a pure function of model and batch (`loss`). Most methods override one or two hooks.

A stack trains E runs as one model. Then `fit`, `order`, `draw`, `end_epoch` and `diagnostics` are called on each run's
own method. `begin`, `loss`, `step` and `predictors` are called on their stack: one module whose buffers and parameters
have a leading axis of E (`cmixup.training.model_stack.stack_modules`). For one run both are the same
object. So `loss` must work with a leading axis on every tensor: it reduces the last axes only.

A method is an `nn.Module`, so that its state can be saved: tensors that `loss` or `step` read are buffers or
parameters, and numbers that draws or steps count are its extra state (`get_extra_state`).
"""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from cmixup.data import RegressionData, Split, Tasks
from cmixup.errors import InputError
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, PredictFn, shuffled
from cmixup.training.losses import SQUARED, squared_error, squared_errors
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend
from cmixup.training.settings import TrainSettings
from cmixup.training.training import Training


class Method(nn.Module):
    """A way to train. This base class is empirical risk minimisation without its loss.

    Most methods need `fit`, `draw`, `loss` and `diagnostics` alone; the other hooks follow in the order of a run.
    """

    #: The first epoch, counted from 1, whose weights may be the selected ones, if training gets that far; for methods
    #: with a warm-up that do not compare its scores with those of later epochs.
    selects_from: int = 1

    #: The error of a batch and of each of its rows: the squared error, unless `train.loss` names another.
    error: Callable[..., Tensor] = staticmethod(squared_error)
    errors: Callable[[Tensor, Tensor], Tensor] = staticmethod(squared_errors)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        """Prepare for one run: read the training data and the model's shape, and refuse data that do not suit.

        Args:
            data: what the run trains and validates on, with labels in their own unit (`Batch.y` is scaled for the loss
                and `Batch.labels` is not). The test split must not be read.
            model: the freshly initialised model. A method may add parameters to it (MR-MAML), nothing else.
            streams: the run's random streams; None if the run goes on from a checkpoint. Whatever would be drawn or
                searched then, here or in `begin`, comes with `load_state_dict`, which is called after `begin`.
        """

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of an epoch by name, each `(M,)` or `(M, n)` and aligned with `order.index`.

        `cmixup.training.batch` lists the names with a meaning of their own, such as `partner`.
        """
        return {}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the training loss, a scalar, or `(E,)` for a stack of E models; its errors are `self.error`'s."""
        raise InputError(f"method {type(self).__name__} defines no loss")

    def diagnostics(self) -> dict[str, float | str]:
        """Return facts about the trained method for its record, by name: numbers, and verdicts in words."""
        return {}

    def begin(self, training: Training) -> None:
        """Make objects for the time of training, such as optimisers of networks that the method owns.

        A method that searches before it trains does so here, for all runs at once, unless `training.resumed`. The
        training may be kept until it ends.
        """

    def order(
        self, train: Split, batch_size: int, streams: Streams, *, drop_last: bool, shuffle: bool = True
    ) -> EpochBatches:
        """Return the rows of the next epoch in batches. Methods that draw rows by domain ignore `shuffle`."""
        return shuffled(len(train), batch_size, streams.order if shuffle else None, drop_last=drop_last)

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        """Take one optimiser step and return the detached loss; for inner steps or networks of the method's own."""
        return descend(self.loss(stack.model, batch), stack.optimizer)

    def end_epoch(self, epoch: int, error: float) -> None:
        """Hear how an epoch of this run, counted from 1, went, after validation and before the state is saved.

        What is learned here must be extra state or buffers, so that a run that goes on has it. The error is the
        selection score on the validation split (`RegressionData.selection`), negated where a higher score is better. It
        is not finite where the run has failed.
        """

    def predictors(self) -> Mapping[str, PredictFn]:
        """Return the ways to predict, by the suffix that their test scores' names get.

        The one called "" is the method's own: it scores validation, too, and selects the checkpoint.
        """
        return {"": lambda model, x: model(x)}

    # Only for speed, tasks, domains or other losses:
    stackable: ClassVar[bool] = True  #: whether `loss` and `step` work on a stack; otherwise seeds train one by one
    tasks: ClassVar[bool] = False  #: whether a row of its data is a task (`cmixup.data.Tasks`)
    domains: ClassVar[bool] = False  #: whether it needs a training split with two domains or more
    #: Names of `LOSSES` that it takes; all, where `loss` calls `self.error` or `self.errors` alone.
    losses: ClassVar[tuple[str, ...]] = (SQUARED.name,)
    gaps: ClassVar[bool] = True  #: whether outputs of a label may be missing, where it takes all losses
    #: Attributes that are used for drawing alone. They alone may differ between the runs of a stack. Every class lists
    #: its own, since a subclass may read them elsewhere.
    per_run: ClassVar[tuple[str, ...]] = ()

    @property
    def divisible(self) -> bool:
        """Whether a step keeps nothing of the whole stack, so that some of its runs can go on alone."""
        return type(self).step is Method.step and type(self).begin is Method.begin

    def check_batch(self, batch_size: int) -> None:
        """Raise `InputError` if full batches of `batch_size` rows do not suit the method; no data has been read yet."""


def check_settings(method: type[Method], settings: TrainSettings) -> None:
    """Raise `InputError` if methods of a class do not take a loss, or label scaling (`loss` changes the model)."""
    name, form = method.__name__, settings.label_scaling
    if form == "loss" and not method.domains:
        raise InputError(f"label_scaling loss is for methods over domains, not {name}; use standard, got {form!r}")
    if settings.loss not in method.losses:
        raise InputError(f"loss must be {' or '.join(method.losses)} for {name}, got {settings.loss!r}")


def check_data(method: Method, data: RegressionData) -> None:
    """Raise `InputError` if a method cannot train on this kind of data: tasks, plain rows, or rows of one domain."""
    name = type(method).__name__
    if isinstance(data.train.x, Tasks) != method.tasks:
        expected = "tasks (support and query of one object)" if method.tasks else "plain rows"
        raise InputError(f"method {name} needs a dataset of {expected}, got {data.name}")
    if bool((gaps := data.train.y.isnan()).any()):
        if not method.gaps or method.losses == (SQUARED.name,):
            raise InputError(f"method {name} takes no labels with gaps, which {data.train.name} has")
        if bool((empty := gaps.all(dim=0)).any()):
            raise InputError(f"label {int(empty.nonzero()[0]) + 1} has no value in any row of {data.train.name}")
    count = len(set(data.train.domain.tolist())) if method.domains else 2
    if count < 2:
        raise InputError(f"{name} needs training rows of two or more domains, {data.train.name} has {count}")


def per_run(method: Method) -> tuple[str, ...]:
    """Return `per_run` of the method's own class, since a subclass may read what its base does not.

    A pairing that chooses in the step is left out: the stack takes that step with the options of one.
    """
    names = vars(type(method)).get("per_run", ())
    return tuple(name for name in names if not getattr(getattr(method, name), "in_step", False))


def shared_options(method: Method) -> str:
    """Return all that a stack takes from the first of its methods, as text: all but `per_run`, of parts, too.

    These are classes and attributes that are a number, a word, a list, true, false, None or a dataclass.
    """
    separate, options = per_run(method), []
    for path, part in method.named_modules():
        is_apart = path.partition(".")[0] in separate
        values = {
            name: value for name, value in vars(part).items()
            if not is_apart and (isinstance(value, (int, float, str, list, tuple, type(None))) or is_dataclass(value))
            and not name.startswith("_") and name not in separate
        }  # fmt: skip
        options.append((path, type(part).__name__, values))
    return repr(options)
