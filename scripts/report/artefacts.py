"""The tables, figures and theorems of the paper that results/artefacts.yaml lists, and what decides on them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path

from cmixup.errors import InputError
from scripts.config.compose import read_part
from scripts.config.parts import checked_arguments
from scripts.records.experiment import RESULTS

FILE = "artefacts.yaml"


@dataclass(frozen=True)
class Comparison:
    """One comparison that decides, "first is better than second", where no pair of methods in a table does.

    Attributes:
        where: what it is about, as a dataset's title.
        of: the query that both sides share, see `scripts.report.evidence`.
        first, second: what each changes of it; a list in `second` is one comparison for each of its values.
        label: which one it is, where there are several of one `where`.
        paper: the queries of the paper's numbers of both, where it prints some.
        runs: the query of the runs behind `first`, whose seeds are held to the experiment's plan.
    """

    where: str
    of: dict = field(default_factory=dict)
    first: dict = field(default_factory=dict)
    second: dict = field(default_factory=dict)
    label: str = ""
    paper: list = field(default_factory=list)
    runs: dict = field(default_factory=dict)


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
        level: pairs of methods that are equivalent according to the paper.
        margin: of equivalence, the experiment whose table of the paper has C-Mixup's gain over ERM.
        worst: whether the error of the worst domain decides as well.
        sweep: an experiment over an option: every value of it is compared with ERM.
        compare: other comparisons that decide, see `Comparison`.
        decides: what decides in words, where it is no pair of methods in a table.
        words: the state, where the paper compares nothing (an illustration).
        stand_in: datasets of the experiment that are not the paper's, which is said.
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
    margin: str = ""
    worst: bool = False
    sweep: str = ""
    compare: list = field(default_factory=list)
    decides: str = ""
    words: str = ""
    stand_in: list = field(default_factory=list)
    minutes: float = 0
    arguments: str = ""
    links: dict = field(default_factory=dict)
    says: str = ""

    @property
    def comparisons(self) -> list[Comparison]:
        """The entries of `compare`.

        Raises:
            InputError: an unknown key or wrong type.
        """
        nodes = [
            Comparison(**checked_arguments(f"{FILE}: {self.name}.compare", node, Comparison)) for node in self.compare
        ]
        return [one for node in nodes for one in _each_second(node)]


def _each_second(node: Comparison) -> list[Comparison]:
    """Return an entry once for every combination of what `second` lists."""
    lists = {key: value for key, value in node.second.items() if isinstance(value, list)}
    chosen = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
    return [
        replace(node, second={**node.second, **own}, label=", ".join(map(str, own.values())) or node.label)
        for own in chosen
    ]


def load_artefacts(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order.

    Raises:
        InputError: an unknown key or wrong type, an artefact that nothing decides, equivalence without a margin, or a
            comparison of which the file does not say in words what it is.
    """
    nodes = read_part(results / FILE)
    found = [
        Artefact(**checked_arguments(f"{FILE}: {name}", node, Artefact), name=name) for name, node in nodes.items()
    ]
    for artefact in found:
        if not (artefact.gain or artefact.level or artefact.sweep or artefact.comparisons or artefact.words):
            raise InputError(f"{FILE}: {artefact.name} must have gain, level, sweep, compare or words")
        if artefact.level and not artefact.margin:
            raise InputError(f"{FILE}: {artefact.name} has level and must have margin")
        if (artefact.sweep or artefact.compare) and not artefact.decides:
            raise InputError(f"{FILE}: {artefact.name} must say what decides")
    return found
