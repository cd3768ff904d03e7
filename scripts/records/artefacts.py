"""The tables, figures and theorems of the paper that results/artefacts.yaml lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cmixup.errors import InputError
from scripts.driver.compose import read_part
from scripts.driver.config import arguments
from scripts.records.experiment import RESULTS

FILE = "artefacts.yaml"


@dataclass(frozen=True)
class Artefact:
    """A table, figure or theorem of the paper.

    Attributes:
        name: its key in the file.
        paper: number and LaTeX label in the paper.
        what: what it shows.
        command: the make target.
        experiment: whose published runs are looked at; empty for what is not trained.
        presets: whose runs decide.
        options: what these runs change of their preset.
        gain: pairs of methods, the first of which is better according to the paper.
        level: pairs of methods that are level according to the paper.
        claims: otherwise, sentences that say what the paper says, claim by what it is about.
        against: sentences that say that it is not so.
        words: the state, where neither runs nor claims decide it (an illustration).
        stand_in: datasets of the experiment that are not the paper's: they are told apart.
        minutes: what the command costs on one core, where no experiment says it.
        arguments: variables of the make target.
        links: text to file below results/.
        says: what the paper says, where README names it.
    """

    name: str
    paper: str
    what: str
    command: str
    experiment: str = ""
    presets: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    gain: list = field(default_factory=list)
    level: list = field(default_factory=list)
    claims: dict = field(default_factory=dict)
    against: dict = field(default_factory=dict)
    words: str = ""
    stand_in: list = field(default_factory=list)
    minutes: float = 0
    arguments: str = ""
    links: dict = field(default_factory=dict)
    says: str = ""


def load(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order.

    Raises:
        InputError: an unknown key or wrong type, or an artefact that nothing decides.
    """
    nodes = read_part(results / FILE)
    found = [Artefact(**arguments(f"{FILE}: {name}", node, Artefact), name=name) for name, node in nodes.items()]
    for artefact in found:
        if not (artefact.gain or artefact.level or artefact.claims or artefact.against or artefact.words):
            raise InputError(f"{FILE}: {artefact.name} must have gain, level, claims, against or words")
    return found
