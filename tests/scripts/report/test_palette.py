"""One look a method in every picture: ERM black, C-Mixup vermilion, for the colour-blind too."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from scripts.config.compose import option_names
from scripts.records.names import method_title
from scripts.report.palette import BLACK, COLOURS, LOOKS, SERIES, VERMILION, method_look

REPO = Path(__file__).resolve().parents[3]
#: What a dichromat sees of linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
BLIND = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}


def test_erm_is_black_and_cmixup_alone_is_vermilion() -> None:
    assert COLOURS["erm"] == BLACK
    family = {name for name, colour in COLOURS.items() if colour == VERMILION}
    assert "cmixup" in family
    assert all(name.startswith("cmixup") for name in family)
    assert VERMILION not in SERIES
    assert BLACK not in SERIES


def test_every_look_is_of_a_method_and_no_two_of_the_same_table_are_alike() -> None:
    assert LOOKS.keys() <= set(option_names("method"))
    single = {name: look for name, look in LOOKS.items() if "meta" not in name and name not in ("maml", "mr_maml")}
    for (one, a), (other, b) in itertools.combinations(single.items(), 2):
        assert a != b, f"{one} and {other} look alike"


def test_a_title_and_a_name_have_the_same_look() -> None:
    assert all(method_look(name)["color"] == method_look(method_title(name))["color"] for name in LOOKS)
    assert method_look("a method of a stranger")["color"] not in (BLACK, VERMILION)


@pytest.mark.parametrize("kind", BLIND)
def test_the_main_methods_differ_for_the_colour_blind(kind: str) -> None:
    def seen(colour: str) -> np.ndarray:
        linear = np.power(to_rgb(colour), 2.2)
        return np.power(np.clip(np.array(BLIND[kind]) @ linear, 0, 1), 1 / 2.2)

    main = [COLOURS[name] for name in ("erm", "cmixup", "mixup", "manifold_mixup", "regmixup", "k_mixup")]
    for one, other in itertools.combinations(main, 2):
        assert np.linalg.norm(seen(one) - seen(other)) > 0.12, (one, other)


def test_no_picture_takes_a_colour_by_its_number() -> None:
    """`C0`, `C1` ... give a method the colour of its place in a list."""
    files = [*REPO.glob("scripts/**/*.py"), REPO / "docs" / "bandwidth.md"]
    assert [str(f) for f in files if re.search(r"""["'{]C\d\b|f["']C\{""", f.read_text())] == []
