"""Nested tuples, lists and dictionaries of tensors: batches, labels and hidden states as training code has them."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from cmixup.errors import InputError

#: An entry of a tree: its key in whatever mapping, or its place from the top, such as (0, "x").
Entry = str | tuple[str | int, ...]


def map_leaves(
    function: Callable[..., Any], path: str, first: Any, *others: Any, keep: tuple[Entry, ...] = (),
    place: tuple[str | int, ...] = (),
) -> Any:  # fmt: skip
    """Return a tree of the form of `first` with `function(path, leaf, *other_leaves)` in the place of every leaf.

    A tree is tuples (named ones, too), lists and mappings, nested in any way; everything else is a leaf, and so is a
    packed sequence. `path` is such as "batch['image'][0]", from the name of the tree on. Trees of another form raise
    `InputError`. Entries that `keep` names, from the top of the tree where `first` stands at `place`, stay as they are.
    """
    if isinstance(first, Tensor):  # first, as every step asks
        return function(path, first, *others)

    def map_entry(key: Any, *values: Any) -> Any:
        if keep and (key in keep or (*place, key) in keep):
            return values[0]
        return map_leaves(function, f"{path}[{key!r}]", *values, keep=keep, place=(*place, key))

    if isinstance(first, Mapping):
        for other in others:
            if not isinstance(other, Mapping) or other.keys() != first.keys():
                raise InputError(f"{path} must have the same keys on both sides, got {_form(first)} and {_form(other)}")
        return _like(first, {key: map_entry(key, *(tree[key] for tree in (first, *others))) for key in first})
    if isinstance(first, (tuple, list)) and not isinstance(first, PackedSequence):
        for other in others:
            if not isinstance(other, (tuple, list)) or len(other) != len(first):
                raise InputError(f"{path} must be as long on both sides, got {_form(first)} and {_form(other)}")
        mapped = [map_entry(n, *values) for n, values in enumerate(zip(first, *others, strict=True))]
        return type(first)(*mapped) if hasattr(first, "_fields") else type(first)(mapped)
    return function(path, first, *others)


def entries(tree: Any, place: tuple[str | int, ...] = ()) -> set[Entry]:
    """Return every name under which `map_leaves` keeps an entry of a tree."""
    pairs = tree.items() if isinstance(tree, Mapping) else enumerate(tree) if isinstance(tree, (tuple, list)) else ()
    names: set[Entry] = set()
    for key, value in pairs:
        names |= {key} if isinstance(key, str) else set()
        names |= {(*place, key)} | entries(value, (*place, key))
    return names


def unbind(tree: Any, rows: Sequence[Any], *, keep: tuple[Entry, ...] = (), place: tuple[str | int, ...] = ()) -> list:
    """Return the rows of a tree of tensors `(B, ...)` that was put together from B `rows`, each in its form there.

    Entries of `keep` stay as they are in `rows`; without any, and without mappings, the first of them is enough.
    """
    first = rows[0]

    def column(key: Any) -> list[Any]:
        values = [row[key] for row in rows]
        is_kept = key in keep or (*place, key) in keep
        return values if is_kept else unbind(tree[key], values, keep=keep, place=(*place, key))

    if isinstance(first, Mapping):
        table = zip(*map(column, first), strict=True)
        return [_like(row, dict(zip(first, values, strict=True))) for row, values in zip(rows, table, strict=True)]
    if isinstance(first, (tuple, list)):
        table = zip(*map(column, range(len(first))), strict=True)
        return list(map(getattr(type(first), "_make", type(first)), table))
    return list(tree.unbind(0))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree in order."""
    if isinstance(tree, Tensor):
        return [tree]
    collected: list[Any] = []
    map_leaves(lambda _, leaf: collected.append(leaf), "tree", tree)
    return collected


def _like(first: Mapping[Any, Any], mapped: dict[Any, Any]) -> Any:
    """Return `mapped` as a mapping of the class of `first` (an OrderedDict, a Hugging Face output), where it can be."""
    if type(first) is dict:
        return mapped
    try:
        result = copy.copy(first)
        for key, value in mapped.items():
            result[key] = value  # type: ignore[index]  # mappings that cannot be written to raise here
    except TypeError:
        return mapped
    return result


def _form(tree: Any) -> str:
    if isinstance(tree, Mapping):
        return f"keys {list(tree)}"
    return f"{type(tree).__name__} of {len(tree)}" if isinstance(tree, (tuple, list)) else type(tree).__name__
