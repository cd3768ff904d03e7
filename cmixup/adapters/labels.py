"""Where the labels of a batch are, and how a batch and its labels are mixed with partners."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils.data import default_collate

from cmixup.errors import InputError, format_value, nearest, not_dense
from cmixup.mixing.linear import check_floating, interpolate
from cmixup.sampling.inputs import to_numpy
from cmixup.tree import Entry, entries, leaves, map_leaves

#: The keys that stand for the labels of a dictionary.
LABEL_KEYS = ("labels", "label", "targets", "target", "y")
#: Says where the labels are: "default", a key, or a function from the batch to its labels.
LabelsGetter = str | Callable[[Any], Any]


class Mix(NamedTuple):
    """Who is mixed with whom, and how much."""

    partner: Tensor  #: (B,) int64; row i is mixed with row `partner[i]`
    lam: Tensor  #: (B,) float32, the weight of row i itself


def find_labels(batch: Any, getter: LabelsGetter, keep: tuple[Entry, ...] = ()) -> Any:
    """Return the labels of a batch: a tensor, or tuples, lists and dictionaries of tensors.

    A `getter` "default" takes the second entry of a tuple or list of two, beside those of `keep`, or the one entry of a
    dictionary whose key is in `LABEL_KEYS`; another text is a key; a function is given the batch.
    """
    if callable(getter):
        return getter(batch)
    if isinstance(batch, Mapping):
        keys = [key for key in (LABEL_KEYS if getter == "default" else (getter,)) if key in batch]
        if len(keys) == 1:
            return batch[keys[0]]
        raise InputError(
            f"labels_getter must find one entry, got {len(keys)} by {format_value(getter)} "
            f"among the keys {format_value(list(batch))}"
        )
    if getter == "default" and isinstance(batch, (tuple, list)):
        candidates = [entry for place, entry in enumerate(batch) if len(batch) == 2 or (place,) not in keep]
        if len(candidates) == 2:
            return candidates[1]
    size = f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""
    raise InputError(
        "labels_getter must be given for a batch that is neither (inputs, labels), beside entries named in keep, as in "
        "keep=(2,), nor a dictionary, got "
        f"{type(batch).__name__}{size} and {format_value(getter)}"
    )


def check_entries(getter: LabelsGetter, keep: Any) -> tuple[LabelsGetter, tuple[Entry, ...]]:
    """Return both arguments, checked; a number in `keep` is a place in the batch itself."""
    if not (isinstance(getter, str) or callable(getter)):
        raise InputError(f"labels_getter must be a key or a function, got {format_value(getter)}")
    is_collection = isinstance(keep, (tuple, list, set, frozenset))
    places: tuple[Any, ...] = tuple((key,) if type(key) is int else key for key in keep) if is_collection else (None,)
    if not all(
        isinstance(key, str) or (isinstance(key, tuple) and key and all(isinstance(k, (str, int)) for k in key))
        for key in places
    ):
        raise InputError(
            f"keep must be a sequence of keys, or of places, as in keep=(2,) or ((0, 1),), got {format_value(keep)}"
        )
    return getter, places


def _check_kept(keep: tuple[Entry, ...], tree: Any) -> None:
    """Raise `InputError` if a name of `keep` is no entry of a tree."""
    names = entries(tree) if keep else set()
    for key in keep:
        if key not in names:
            known = sorted(str(k) for k in names if isinstance(k, str) == isinstance(key, str))
            raise InputError(f"keep must name entries of the batch, got {key!r}{nearest(str(key), known)}")


def label_matrix(labels: Any) -> np.ndarray:
    """Return all outputs of a batch's labels side by side, (B, d) float64."""
    columns: list[np.ndarray] = []

    def add(path: str, leaf: Any) -> None:
        refuse_packed(path, leaf)
        problem = not_dense(leaf) if isinstance(leaf, Tensor) else type(leaf).__name__
        if problem or leaf.is_complex():
            raise InputError(f"{path} must be a dense tensor of real numbers with values, got {problem or leaf.dtype}")
        if torch._C._functorch.is_batchedtensor(leaf):  # noqa: SLF001 - the only way to ask
            raise InputError(f"{path} are inside torch.func.vmap: mix before it, and map over what is mixed")
        if leaf.ndim == 0 or leaf.numel() == 0:
            raise InputError(f"{path} must have shape (B, ...) with B rows and no empty axis, got {tuple(leaf.shape)}")
        if columns and len(columns[0]) != leaf.shape[0]:
            raise InputError(f"{path} must have {len(columns[0])} rows as the other labels, got {len(leaf)}")
        columns.append(
            to_numpy(leaf.float() if leaf.itemsize < 4 else leaf).reshape(leaf.shape[0], -1).astype(np.float64)
        )

    map_leaves(add, "labels", labels)
    if not columns:
        raise InputError(f"labels must hold a tensor, got {format_value(labels)}")
    return np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0]


def no_mix(labels: Any) -> Mix:
    """Return the `Mix` that leaves labels `(B, ...)` as they are: each row itself, with weight 1."""
    n, device = len(label_matrix(labels)), leaves(labels)[0].device
    return Mix(torch.arange(n, device=device), torch.ones(n, device=device))


def collated(rows: list[Any]) -> Any:
    """Return `default_collate(rows)`, or raise `InputError` if they cannot be put together."""
    try:
        return default_collate(rows)
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        reason = " ".join(str(error).split())[:150]
        raise InputError(
            f"rows must be of one form and shape to be put together, got {format_value(rows[0])}: {reason}"
        ) from None


def refuse_packed(path: str, leaf: Any) -> None:
    """Raise `InputError` for a packed sequence, whose rows lie step by step."""
    if isinstance(leaf, PackedSequence):
        raise InputError(
            f"{path} must be padded to be mixed (torch.nn.utils.rnn.pad_packed_sequence with batch_first=True, and "
            "pack what is mixed), got a PackedSequence"
        )


def with_partners(path: str, values: Any, mixed: Mix, rows: int | None = None) -> Tensor:
    """Return the first B rows of a tensor of `rows`, by default B, mixed with their partners."""
    values, (partner, lam) = check_floating(path, values), mixed
    n_rows = partner.shape[0] if rows is None else rows
    if values.ndim == 0 or values.shape[0] != n_rows:
        raise InputError(f"{path} must have {n_rows} rows as the labels, got shape {tuple(values.shape)}")
    anchors = values if rows is None else values[: len(partner)]
    return interpolate(anchors, values[partner.to(values.device)], lam.to(values.device))


def mix_rows(
    batch: Any, labels: Any, mixed: Mix, *, keep: tuple[Entry, ...] = (), path: str = "batch",
    swaps: Mapping[int, Any] | None = None, rows: int | None = None,
) -> Any:  # fmt: skip
    """Return a batch in which every row is mixed with its partner, inputs and labels alike.

    Args:
        batch: tensors `(B, ...)` in tuples, lists and dictionaries; inputs of a floating dtype, None stays None.
        labels: those of its leaves that are labels. Whole numbers and booleans among them become
            `torch.get_default_dtype()`, as in a true division.
        swaps: what stands for leaves that are mixed already, by their `id`.
        rows: see `with_partners`.
    """
    _check_kept(keep, batch)
    label_ids = {id(leaf) for leaf in leaves(labels)}
    mixed_ids = set()

    def mix_leaf(leaf_path: str, leaf: Any) -> Any:
        if leaf is None:
            return None
        refuse_packed(leaf_path, leaf)
        if swaps and id(leaf) in swaps:
            return swaps[id(leaf)]
        if isinstance(leaf, Tensor) and id(leaf) in label_ids:
            mixed_ids.add(id(leaf))
            if not (leaf.is_floating_point() or leaf.is_complex()):
                leaf = leaf.to(torch.get_default_dtype())
        elif not isinstance(leaf, Tensor):
            raise InputError(
                f"{leaf_path} must be a tensor to be mixed, or named in keep, as in keep=(2,) or ((0, 1),), "
                f"got {format_value(leaf)}"
            )
        elif not leaf.is_floating_point():
            raise InputError(
                f"{leaf_path} must be of a floating dtype to be mixed (convert it with .float(), mix a hidden layer by "
                f"mixing_at, or name its key or its place in keep, as in keep=(2,) or ((0, 1),)), got {leaf.dtype}"
            )
        return with_partners(leaf_path, leaf, mixed, rows)

    result = map_leaves(mix_leaf, path, batch, keep=keep)
    if mixed_ids != label_ids:
        raise InputError("labels_getter must return tensors that are in the batch itself, got others")
    return result
