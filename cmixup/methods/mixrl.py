"""MixRL / RegMix (Hwang and Whang 2021, arXiv 2106.03374); no public code found.

A reconstruction: for every example a policy network says how many nearest neighbours it may be mixed with,
learned by REINFORCE from the validation loss of predictors trained for a few steps, in the way of DVRL (google-research
dvrl/dvrl.py). Differences from DVRL: the baseline is a moving average, the reward is divided by its running standard
deviation, and an entropy bonus replaces the hinge on the selection probability. The network sees standardised inputs
and labels, not features of another model. The validation split serves the search and the choice of the checkpoint:
expect optimism there. The test split is never touched. The sizes of the search are ours: results/README.md (MixRL)
says what a longer one is worth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import nn

from cmixup.data import RegressionData
from cmixup.errors import check_choice
from cmixup.methods.base import Method
from cmixup.methods.mix import Mix
from cmixup.methods.mixrl_search import PolicySearch, Search, SearchRun
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.model_stack import ModelStack
from cmixup.pairing.neighbours import Neighbours
from cmixup.seeding import Streams


class MixRL(Mix):
    """`Mix` with `Neighbours` whose probabilities are learned before training.

    Args:
        pairing: the neighbours.
        lam, layer, mixing: see `Mix`.
        final: train with k_i drawn from the policy ("sample") or its most probable option ("argmax").
        search: how the policy is learned.

    Attributes:
        history: validation loss of each step of the search.
        unsearched: the data of a fitted run whose search is still to come, else None.
    """

    pairing: Neighbours

    def __init__(
        self,
        pairing: Neighbours,
        lam: Lam,
        layer: str = "input",
        mixing: Mixing | None = None,
        *,
        final: str = "sample",
        search: Search | None = None,
    ):
        super().__init__(pairing, lam, layer, mixing)
        self.final = check_choice("final", final, ("sample", "argmax"))
        self.search = search or Search()
        self.history: list[float] = []
        self.unsearched: RegressionData | None = None

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        """List the neighbours; a run that goes on loads what was learned, others keep the data until they search."""
        super().fit(data, model, streams)
        self.unsearched = None if streams is None else data

    def begin(self, stack: ModelStack, methods: Sequence[Method], streams: Sequence[Streams]) -> None:
        """Learn the policies of all runs at once."""
        super().begin(stack, methods, streams)
        own = [method for method in methods if isinstance(method, MixRL)]
        runs = [
            SearchRun(method.unsearched, method, method.pairing, stream.mixing)
            for method, stream in zip(own, streams, strict=True)
            if method.unsearched is not None
        ]
        for method in (self, *own):
            method.unsearched = None
        if runs and self.search.outer and len(self.pairing.options) > 1:
            histories = PolicySearch(self.search, self, stack, runs).run(self.on_search)
            for method, history in zip(own, histories, strict=True):
                method.history = history
        if self.final == "argmax":
            for run in runs:
                best = run.pairing.probabilities.argmax(axis=1)
                run.pairing.probabilities = np.eye(len(run.pairing.options))[best]
