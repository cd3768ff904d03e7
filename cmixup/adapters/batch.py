"""`CMixup`: C-Mixup inside a batch, as one call, as a `collate_fn`, or by `mixing_at` in a hidden layer."""

import io
import json
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.adapters.labels import (
    LabelsGetter,
    Mix,
    check_entries,
    collated,
    find_labels,
    label_matrix,
    mix_rows,
    no_mix,
)
from cmixup.errors import InputError, check_count, check_flag, format_value
from cmixup.mixing.lam import Beta
from cmixup.sampling.bandwidth import Bandwidth, parse_bandwidth, resolve_bandwidth
from cmixup.sampling.inputs import Given, as_labels, check_common
from cmixup.sampling.sampler import SelfPairWarning
from cmixup.sampling.within import draw_within
from cmixup.seeding import WorkerStreams
from cmixup.tree import Entry, leaves

#: A bandwidth that depends on the labels is found again each time their number has doubled, up to so many.
MAX_LABELS_SEEN = 512
#: Of a state: the outputs of a label that have room, 8 bytes each; its bytes without labels, and those of labels.
MAX_OUTPUTS_KEPT = 16
STATE_BYTES, LABEL_BYTES = 1 << 12, 8 * MAX_LABELS_SEEN * MAX_OUTPUTS_KEPT


class CMixup(nn.Module):
    """Mix every row of a batch with a partner of the same batch, drawn by label distance (C-Mixup, Yao et al. 2022).

        mixing = CMixup(bandwidth="auto", alpha=2.0, seed=0)
        x, y = mixing(x, y)                                  # in the training loop
        batch = mixing(batch)                                # a tuple of two, or a dictionary with "labels"
        DataLoader(dataset, batch_size=64, collate_fn=mixing)

    Row i becomes `lam_i x_i + (1 - lam_i) x_j`, and its label `lam_i y_i + (1 - lam_i) y_j`: one label to compare with,
    no triple. j is drawn with `P(j|i) ~ exp(-|y_i - y_j|^2 / 2 s^2)` among the batch (i may draw itself), lam_i from
    Beta(alpha, alpha). Nothing is mixed after `.eval()`, which workers that stay (`persistent_workers`) do not see.
    For partners from the whole training set see `PairDataset`.

    NaN among several outputs is a missing label: rows are compared by the outputs that both have, a row without any in
    common with others is its own partner, and a mixed label is NaN where either is missing; your loss leaves it out.

    Args:
        bandwidth: s as `parse_bandwidth` takes it: a number in label units; "auto" for the one at which the median row
            has a fifth of the labels as effective partners; ("fraction", f); or ("std", c) for c standard deviations.
            The last three need labels to look at: `labels`, or else the first 512 that pass by in this process, where
            few labels leave each row at least two effective partners. Ranks of one training would each find another
            bandwidth, so there `labels` must be given, the same on every rank.
        alpha: see `Beta`.
        seed: see `WorkerStreams`.
        labels: (N,) or (N, d) training labels that the bandwidth is found from.
        space: a function from labels (B, d) float64 to the values (B, c) by which rows are compared, such as
            `lambda y: y / std` (a named function where it is pickled). The bandwidth is in their unit.
        lam_per: "example" or "batch".
        labels_getter: where the labels of a single argument are, see `find_labels`.
        keep: entries that stay as they are (indices, masks, texts, categories): keys of dictionaries, wherever they
            stand, or places from the top of the batch, such as 2 for the third entry and (0, 1) for the second tensor
            of a list of inputs.
        return_mix: whether to return the `Mix` of partners and lambda, too, as the last entry of the result.

    Attributes:
        bandwidth: s in use, None where it depends on labels and none has been seen.
    """

    def __init__(
        self, bandwidth: Bandwidth = "auto", alpha: float = 2.0, *, seed: int | None = None,
        labels: Given | None = None, space: Callable[[np.ndarray], Given] | None = None, lam_per: str = "example",
        labels_getter: LabelsGetter = "default", keep: tuple[Entry, ...] = (), return_mix: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        parsed = self._given_bandwidth = parse_bandwidth(bandwidth)
        self.bandwidth = parsed if isinstance(parsed, float) else None
        self.lam = Beta(alpha, lam_per)
        if not (space is None or callable(space)):
            raise InputError(f"space must be a function of the labels, got {format_value(space)}")
        self.space = space
        self.labels_getter, self.keep = check_entries(labels_getter, keep)
        self.return_mix = check_flag("return_mix", return_mix)
        self._warning = SelfPairWarning()
        self._streams = WorkerStreams(seed)
        self._seen: np.ndarray | None = None
        self._fitted_to = 0
        self._outputs: int | None = None
        self._collects_labels = self.bandwidth is None and labels is None
        self._state_bytes = STATE_BYTES + LABEL_BYTES * self._collects_labels
        if labels is not None:
            values = as_labels("labels", labels, gaps=True).astype(np.float64)
            check_common("labels", values)
            self._fit(values.reshape(len(values), -1))

    def forward(self, *batch: Any) -> Any:
        """Return the batch with every row mixed with its partner, in the form in which it came.

        Args:
            batch: `(x, y)`, then the entries to keep, or one argument: a tuple, list or dictionary that holds the
                labels, or the list of samples that a `DataLoader` gives its `collate_fn` (entries that are all tuples,
                lists or dictionaries), which `default_collate` makes a batch of first. Inputs are `(B, ...)` of a
                floating dtype, alone or in tuples, lists and dictionaries; labels `(B,)` or `(B, ...)` of any real
                dtype, whole numbers become floats.

        Returns:
            The batch, mixed; with `return_mix` followed by the `Mix`. After `.eval()` the batch as it is.
        """
        if not batch:
            raise InputError("mixing takes (x, y) or one batch, got 0 arguments")
        tree: Any = batch[0] if len(batch) == 1 else batch
        if isinstance(tree, list) and tree and all(isinstance(row, (tuple, list, Mapping)) for row in tree):
            tree = collated(tree)
        labels = batch[1] if len(batch) == 2 else find_labels(tree, self.labels_getter, self.keep)
        if not (self.training or self.return_mix):
            return tree
        mixed = self.draw(labels)
        if self.training:
            tree = mix_rows(tree, labels, mixed, keep=self.keep)
        if not self.return_mix:
            return tree
        return (*tree, mixed) if len(batch) > 1 else (tree, mixed)

    def draw(self, labels: Any) -> Mix:
        """Draw a partner and a weight for every row of labels `(B, ...)`, on their device.

        After `.eval()` each row itself and 1. Under `torch.compile` the graph breaks here.
        """
        if torch.compiler.is_dynamo_compiling():
            # A decorator would import the compiler with cmixup.
            return torch.compiler.disable(CMixup.draw)(self, labels)  # type: ignore[no-untyped-call]
        if not self.training:
            return no_mix(labels)
        values = as_labels("labels", label_matrix(labels), gaps=True)
        values = values.reshape(len(values), -1)
        if self._outputs not in (None, values.shape[1]):
            raise InputError(f"labels must have {self._outputs} outputs as before, got {values.shape[1]}")
        self._outputs = values.shape[1]
        if self._collects_labels:
            self._collect(values)
        assert self.bandwidth is not None
        partner = draw_within(self._compared(values), self.bandwidth, self._streams["partners"])
        self._warning.check(np.arange(len(partner)), partner, self.bandwidth, len(partner))
        lam, device = self.lam.draw(np.array([len(values)]), self._streams["lam"]), leaves(labels)[0].device
        return Mix(torch.from_numpy(partner).to(device), torch.from_numpy(lam).to(device))

    def get_extra_state(self) -> Tensor:
        """Return streams and labels seen, for `state_dict`.

        They are bytes, `(4096,)` uint8, or `(69632,)` where the bandwidth is found from labels that pass by; so many
        from the beginning on, as tools for checkpoints and averages expect. Labels of more than 16 outputs have no
        room: from their state a bandwidth is found anew.
        """
        seen, fitted_to = self._seen, self._fitted_to
        if seen is None or seen.shape[1] > MAX_OUTPUTS_KEPT:
            seen, fitted_to = np.empty((0, 0)), 0
        content = {"streams": self._streams.state(), "fitted_to": fitted_to}
        file = io.BytesIO()
        np.savez(file, content=np.frombuffer(json.dumps(content).encode(), dtype=np.uint8), seen=seen)
        return torch.frombuffer(bytearray(file.getvalue().rjust(self._state_bytes, b"\0")), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Go on from `get_extra_state`, draw for draw; a rank other than the one that saved gets streams of its own.

        An average of several states is none: a warning says so, and the mixing goes on as it is.
        """
        try:
            archive = state.cpu().to(torch.uint8).numpy().tobytes().lstrip(b"\0")
            with np.load(io.BytesIO(archive), allow_pickle=False) as file:  # its checksums show damage
                content, seen = json.loads(file["content"].tobytes()), file["seen"]
            fitted_to = check_count("fitted_to", content["fitted_to"])
            self._streams.restore(content["streams"])
        except (AttributeError, EOFError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
            if isinstance(state, Tensor) and state.shape in ((STATE_BYTES,), (STATE_BYTES + LABEL_BYTES,)):
                warnings.warn("the state of a CMixup was averaged or damaged, and is not gone on from", stacklevel=2)
                return
            raise InputError(f"state must be that of a CMixup, got {format_value(state)}") from None
        if self._collects_labels:
            self.bandwidth, self._seen, self._fitted_to, self._outputs = None, None, 0, None
            if len(seen):
                self._fit(seen[:fitted_to])
                self._seen = seen

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Load as any module, and go on as it is with a state from before there was a mixing, also if `strict`."""
        super()._load_from_state_dict(state_dict, prefix, *args)
        missing = args[2]
        missing[:] = [key for key in missing if key != f"{prefix}_extra_state"]

    def extra_repr(self) -> str:
        """Return the options, for printing."""
        return f"bandwidth={self._given_bandwidth}, lam={self.lam}"

    def _collect(self, values: np.ndarray) -> None:
        """Add labels `(B, d)` to those that the bandwidth is found from, and find it again if these have doubled."""
        if (ranks := self._streams.place[1]) > 1:
            raise InputError(
                f"labels must be given, the same on each of {ranks} ranks, for a bandwidth that depends on them, "
                "got labels=None"
            )
        seen = values if self._seen is None else np.concatenate([self._seen, values])
        self._seen = seen[:MAX_LABELS_SEEN]
        if len(self._seen) > self._fitted_to and len(self._seen) >= min(2 * self._fitted_to, MAX_LABELS_SEEN):
            self._fit(self._seen)

    def _fit(self, values: np.ndarray) -> None:
        """Find the bandwidth from labels `(N, d)`."""
        bandwidth = self._given_bandwidth
        if isinstance(bandwidth, tuple) and bandwidth[0] == "fraction":
            bandwidth = ("fraction", min(1.0, max(bandwidth[1], 2 / len(values))))
        self.bandwidth = resolve_bandwidth(self._compared(values), bandwidth)
        self._fitted_to, self._outputs = values.shape

    def _compared(self, values: np.ndarray) -> np.ndarray:
        """Return the values `(B, c)` by which labels `(B, d)` are compared."""
        if self.space is None:
            return values
        points = as_labels("space(labels)", self.space(values), gaps=True).astype(np.float64)
        if len(points) != len(values):
            raise InputError(f"space(labels) must have {len(values)} rows as the labels, got {len(points)}")
        return points.reshape(len(points), -1)
