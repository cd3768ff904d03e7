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

from typing import ClassVar

import numpy as np

from cmixup.errors import check_choice
from cmixup.handle import Training
from cmixup.losses import SQUARED
from cmixup.methods.mix import Mix
from cmixup.methods.mixrl_search import PolicySearch, Search
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.pairing.neighbours import Neighbours


class MixRL(Mix):
    """`Mix` with `Neighbours` whose probabilities are learned before training.

    Args:
        pairing: the neighbours.
        lam, layer, mixing: see `Mix`.
        final: train with k_i drawn from the policy ("sample") or its most probable option ("argmax").
        search: how the policy is learned.

    Attributes:
        history: validation loss of each step of the search.
    """

    pairing: Neighbours

    losses: ClassVar[tuple[str, ...]] = (SQUARED.name,)

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

    def begin(self, training: Training) -> None:
        """Learn the policies of all runs at once; runs that go on have them in their state."""
        super().begin(training)
        if training.resumed:
            return
        if self.search.outer and len(self.pairing.options) > 1:
            histories = PolicySearch(self.search, self, training).run()
            for method, history in zip(training.methods, histories, strict=True):
                method.history = history
        if self.final == "argmax":
            for method in training.methods:
                best = method.pairing.probabilities.argmax(axis=1)
                method.pairing.probabilities = np.eye(len(method.pairing.options))[best]
