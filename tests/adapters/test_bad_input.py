"""Bad input to the public API: one clear `InputError` each, and nothing silent."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from cmixup import (
    BatchPartnerSampler,
    Beta,
    CMixup,
    InputError,
    PairBatchSampler,
    PairDataset,
    PartnerSampler,
    bandwidth_for_fraction,
    mix,
    mixing_at,
)

X, Y = torch.ones(4, 3), torch.arange(4.0)
ROWS = TensorDataset(X, Y)
PACKED = nn.utils.rnn.pack_sequence([X[:k] for k in (4, 3, 2, 1)])


def nested(layout: torch.layout = torch.strided) -> torch.Tensor:
    """A nested tensor; made where it is used, since PyTorch then imports its compiler."""
    return torch.nested.as_nested_tensor([X[:k] for k in (1, 2, 3, 4)], layout=layout)


def pairs() -> PairDataset:
    return PairDataset(ROWS, Y, 1.0, seed=0)


def at(layer: Any, model: Any = None, mixing: Any = None, *, y: Any = Y, x: Any = None, mask: Any = None) -> None:
    model = nn.Sequential(nn.Linear(3, 1)) if model is None else model
    with mixing_at(model, layer, mixing or CMixup(1.0), y, mask=mask):
        if x is not None:
            model(x)


#: What is called, and what the message has to name.
TABLE: dict[str, tuple[Callable[[], Any], str]] = {
    # mix
    "mix: broadcast of the partner's rows": (lambda: mix(X, X[:1], 0.5), r"second must be like first, \(4, 3\)"),
    "mix: two dtypes": (lambda: mix(X, X.double(), 0.5), "torch.float64"),
    "mix: lambda too short": (lambda: mix(X, X, torch.rand(1)), r"lam must have the leading shape .* got \(1,\)"),
    "mix: lambda above 1": (lambda: mix(X, X, torch.tensor([0.5, 1, 1, 7.0])), r"lam must lie in \[0, 1\], got 7.0"),
    "mix: lambda of whole numbers": (lambda: mix(X, X, torch.ones(4, dtype=torch.int64)), "lam must be of a floating"),
    "mix: whole numbers": (lambda: mix(X.long(), X.long(), 0.5), "first must be of a floating dtype"),
    "mix: sparse": (lambda: mix(X.to_sparse(), X.to_sparse(), 0.5), "dense tensor"),
    "mix: NumPy states": (lambda: mix(X.numpy(), X.numpy(), 0.5), "first must be a tensor, got ndarray"),
    "mix: tuples of two lengths": (lambda: mix((X,), (X, X), 0.5), "first must be as long on both sides"),
    "mix: other keys": (lambda: mix({"a": X}, {"b": X}, 0.5), "first must have the same keys"),
    # Beta
    "Beta: alpha without end": (lambda: Beta(10**400), "alpha must be a number that a float can hold"),
    "Beta: lam_per": (lambda: Beta(2.0, "row"), "lam_per must be one of example, batch"),
    "Beta: negative n": (lambda: Beta(2.0).sample(-1), "n must be a whole number, 0 or more, got -1"),
    "Beta: rng a seed": (lambda: Beta(2.0).sample(3, 0), "rng must be a numpy.random.Generator"),  # type: ignore[arg-type]
    # arguments of CMixup
    "CMixup: negative bandwidth": (lambda: CMixup(-1.0), "bandwidth must be 0 or more"),
    "CMixup: misspelt bandwidth": (lambda: CMixup("atuo"), 'bandwidth must be a number, "auto"'),
    "CMixup: fraction of 2": (lambda: CMixup(("fraction", 2)), "fraction must be above 0 and at most 1"),
    "CMixup: alpha": (lambda: CMixup(1.0, -2), "alpha must be a finite number above 0, got -2"),
    "CMixup: NaN labels": (lambda: CMixup("auto", labels=[1.0, np.nan]), "labels must be finite .* in row 1"),
    "CMixup: space a number": (lambda: CMixup(1.0, space=2.0), "space must be a function"),  # type: ignore[arg-type]
    "CMixup: labels_getter": (lambda: CMixup(1.0, labels_getter=1), "labels_getter must be"),  # type: ignore[arg-type]
    "CMixup: keep a text": (lambda: CMixup(1.0, keep="id"), "keep must be a sequence of keys"),  # type: ignore[arg-type]
    "CMixup: return_mix": (lambda: CMixup(1.0, return_mix=1), "return_mix must be True"),  # type: ignore[arg-type]
    # its batches
    "batch: no argument": (CMixup(1.0), "mixing takes .* got 0 arguments"),
    "batch: inputs alone": (lambda: CMixup(1.0)(X), "labels_getter must be given .* got Tensor"),
    "batch: no label key": (lambda: CMixup(1.0)({"x": X, "price": Y}),
     r"got 0 by 'default' among the keys \['x', 'price'\]"),
    "batch: missing key": (lambda: CMixup(1.0, labels_getter="p")({"x": X, "y": Y}), "got 0 by 'p' among"),
    "batch: labels from elsewhere": (lambda: CMixup(1.0, labels_getter=lambda b: b[1] + 0)((X, Y)),
     "labels_getter must return tensors that are in the batch"),
    "batch: NumPy labels": (lambda: CMixup(1.0)(X, Y.numpy()), "labels must be a dense tensor .* got ndarray"),
    "batch: an empty tuple of labels": (lambda: CMixup(1.0)(X, ()), "labels must hold a tensor"),
    "batch: a single label": (lambda: CMixup(1.0)(X, Y[0]), r"labels must have shape \(B, ...\)"),
    "batch: NaN label": (lambda: CMixup(1.0)(X, Y.log() * 0 / 0), r"labels must be finite .* got nan in row 0"),
    "batch: rows that differ": (lambda: CMixup(1.0)(X[:3], Y), r"batch\[0\] must have 4 rows as the labels"),
    "batch: token ids": (lambda: CMixup(1.0)(X.long(), Y), "hidden layer .* got torch.int64"),
    "batch: texts": (lambda: CMixup(1.0)({"n": ["a"] * 4, "y": Y}),
     r"batch\['n'\]\[0\] must be a tensor .*keep.* got 'a'"),
    "batch: no labels in evaluation": (lambda: CMixup(1.0).eval().draw(None), "labels must be a dense tensor"),
    "batch: labels of two outputs, then three": (
        lambda: [mixing(X[:, :d], X[:, :d]) for mixing in [CMixup()] for d in (2, 3)],
        "labels must have 2 outputs as before, got 3"),
    "batch: the same with a bandwidth": (
        lambda: [mixing(X[:, :d], X[:, :d]) for mixing in [CMixup(1.0)] for d in (2, 3)],
        "labels must have 2 outputs as before, got 3"),
    "batch: a space of one row": (lambda: CMixup(1.0, space=lambda y: y[:1])(X, Y), r"space\(labels\) must have 4"),
    "batch: an infinite space": (lambda: CMixup(1.0, space=lambda y: y + np.inf)(X, Y), r"space\(labels\) must be fin"),
    "batch: three entries": (lambda: CMixup(1.0)((X, Y, Y)), r"labels_getter must .* keep=\(2,\).* got tuple of 3"),
    "batch: weights of whole numbers": (lambda: CMixup(1.0)({"x": X, "y": Y, "w": Y.long()}), r"as in keep=\(2,\)"),
    "batch: nested inputs": (lambda: CMixup(1.0)(nested(), Y), r"batch\[0\] must be a dense .* nested .*padded_tensor"),
    "batch: sparse labels": (lambda: CMixup(1.0)(X, X.to_sparse()), r"labels .* got torch.sparse_coo, .*to_dense\(\)"),
    "batch: labels of the device meta": (lambda: CMixup(1.0)(X, Y.to("meta")), "labels .* with values, got a .* meta"),
    "batch: packed inputs": (lambda: CMixup(1.0)({"x": PACKED, "y": Y}), r"batch\['x'\] .*pad_packed_sequence"),
    "batch: packed labels": (lambda: CMixup(1.0)(X, PACKED), "labels must be padded .* got a PackedSequence"),
    "layer: packed output": (lambda: at("0", nn.Sequential(nn.Identity()), x=PACKED), "output of layer '0' .*padded"),
    "layer: nested mask": (lambda: at("0", mask=nested()), "mask must be a tensor of 4 rows .* got a nested"),
    # a hidden layer
    "layer: unknown": (lambda: at("1"), "layer must be a module of Sequential, got '1'; there are 0"),
    "layer: model a function": (lambda: at("0", model=lambda x: x), "model must be a torch.nn.Module"),
    "layer: mixing a number": (lambda: at("0", mixing=0.5), "mixing must be a CMixup"),
    "layer: did not run": (lambda: at("0"), "got no run: nothing was mixed"),
    "layer: labels of another number": (lambda: at("0", y=Y[:3], x=X), "must have 3 rows as the labels, got shape"),
    # PairDataset and PairBatchSampler
    "pairs: no dataset": (lambda: PairDataset(3, Y), "dataset must have __getitem__ and __len__"),
    "pairs: labels of another length": (lambda: PairDataset(ROWS, Y[:3]), "labels must have a row for each of .* 4"),
    "pairs: index a float": (lambda: pairs()[1.0], "index must be a whole number"),  # type: ignore[index]
    "pairs: rows of whole numbers": (lambda: PairDataset(TensorDataset(X.long(), Y), Y)[0],
     r"row\[0\] must be of a floating dtype .* got torch.int64"),
    "batches: pairs": (lambda: PairBatchSampler(ROWS, 2), "pairs must be a PairDataset"),  # type: ignore[arg-type]
    "batches: size 0": (lambda: PairBatchSampler(pairs(), 0), "batch_size must be a whole number, 1 or more, got 0"),
    "batches: nothing left": (lambda: PairBatchSampler(pairs(), 5, drop_last=True), "batch_size must leave a whole"),
    "batches: rank": (lambda: PairBatchSampler(pairs(), 2, seed=0, rank=2, world=2),
     "rank must be below world=2, got 2"),
    "batches: ranks without a seed": (lambda: PairBatchSampler(pairs(), 2, rank=0, world=2), "seed must be given"),
    "batches: epoch": (lambda: PairBatchSampler(pairs(), 2).set_epoch(-1), "epoch must be a whole number"),
    # samplers and the diagnostic
    "sampler: sparse labels": (lambda: PartnerSampler(X.to_sparse(), 1.0), "labels must be a dense tensor"),
    "sampler: masked labels": (lambda: PartnerSampler(np.ma.masked_less([1.0, 2], 2), 1.0), "no masked entries, got 1"),
    "sampler: ragged labels": (lambda: PartnerSampler([[1, 2], [3]], 1.0), "labels must have rows of one length"),
    "sampler: bandwidth without end": (lambda: PartnerSampler(Y, 10**400), "bandwidth must be a number that a float"),
    "sampler: NaN label": (lambda: PartnerSampler([0.0, np.nan], 1.0), "labels must be finite .* got nan in row 1"),
    "sampler: complex labels": (lambda: PartnerSampler([1j], 1.0), "labels must be real numbers, got dtype complex128"),
    "sampler: method": (lambda: PartnerSampler(Y, 1.0, method="fast"), "method must be one of .* got 'fast'"),
    "sampler: memory": (lambda: PartnerSampler(Y, 1.0, memory_budget=-1), "memory_budget must be .* got -1"),
    "sampler: anchors of floats": (lambda: PartnerSampler(Y, 1.0).draw([0.5], np.random.default_rng(0)),
     "anchors must be .* integers"),
    "sampler: anchors outside": (lambda: PartnerSampler(Y, 1.0).draw([4], np.random.default_rng(0)),
     r"anchors must lie in 0\.\.3, got 4"),
    "sampler: huge label": (lambda: PartnerSampler([1e200, 0.0], 1.0), r"labels .*1e\+200"),
    "sampler: cells of several outputs": (lambda: PartnerSampler(X, 1.0, method="cells"), r"method 'cells' .*\(4, 3\)"),
    "sampler: table over budget": (lambda: PartnerSampler(np.zeros(100), 1.0, method="sparse", memory_budget=10),
     "sparse needs 2000 .*memory_budget=10"),
    "diagnose: fraction above 1": (lambda: bandwidth_for_fraction(Y, 20), "fraction must be .* got 20"),
    "batch sampler: auto": (lambda: BatchPartnerSampler("auto"), "bandwidth must be a number, got 'auto'"),  # type: ignore[arg-type]
    "batch sampler: other outputs": (lambda: BatchPartnerSampler(1.0).draw(Y, X, np.random.default_rng(0)),
     "first and second must have as many outputs"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_one_clear_line(case: str) -> None:
    call, message = TABLE[case]
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert re.search(r"\bgot\b|=|\bgo(es)? with\b|\bgo together\b", str(caught.value)), "it does not say what was given"
