"""One look a method in every picture: ERM black, C-Mixup vermilion, for the colour-blind too."""

import itertools

from scripts.config.compose import option_names
from scripts.records.names import method_title
from scripts.report.figures import BLACK, COLOURS, LOOKS, SERIES, VERMILION, method_look

#: What a dichromat sees of linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.


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
