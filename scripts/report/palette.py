"""One look a method in every picture: ERM is black, C-Mixup vermilion.

Colours are those of Okabe and Ito ("Color Universal Design", 2008), which the colour-blind tell apart. Their yellow is
left out, since it is pale on white. Variants of C-Mixup share its colour and have hollow markers. A method without a
family is grey and has its own marker.
"""

from __future__ import annotations

from typing import Any

from scripts.records.names import method_title

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

#: Of a method: its colour, its marker, and whether that is filled.
LOOKS: dict[str, tuple[str, str, bool]] = {
    "erm": (BLACK, "o", True),
    "cmixup": (VERMILION, "D", True),
    "cmixup_batch": (VERMILION, "s", False),
    "cmixup_x": (VERMILION, "<", False),
    "cmixup_h": (VERMILION, ">", False),
    "cmixup_h_cosine": (VERMILION, "h", False),
    "cmixup_h_pool": (VERMILION, "H", False),
    "cmixup_xy": (VERMILION, "v", False),
    "cmixup_hy": (VERMILION, "^", False),
    "cmixup_meta": (VERMILION, "d", True),
    "mixup": (BLUE, "s", True),
    "manifold_mixup": (GREEN, "^", True),
    "regmixup": (PURPLE, "P", True),
    "k_mixup": (SKY, "v", True),
    "local_mixup": (ORANGE, "<", True),
    "mixrl": (SKY, "X", True),
    "rc_mixup": (ORANGE, "X", True),
    "ada": (GREEN, "d", True),
    "foma": (PURPLE, "d", True),
    "sk_mixup": (SKY, "p", True),
    "cutmix": (GREEN, "p", True),
    "puzzlemix": (PURPLE, "p", True),
    "automix": (ORANGE, "p", True),
    "input_noise": (GREY, "*", True),
    "resample": (GREY, "p", True),
    "irm": (SKY, "^", True),
    "ib_irm": (SKY, "v", False),
    "vrex": (ORANGE, "o", True),
    "coral": (PURPLE, "o", True),
    "group_dro": (GREEN, "o", True),
    "fish": (GREY, "o", True),
    "drnn": (GREY, "v", True),
    "maml": (BLACK, "o", True),
    "mr_maml": (SKY, "v", True),
    "meta_aug": (GREEN, "^", True),
    "metamix": (BLUE, "s", True),
    "k_metamix": (PURPLE, "P", True),
    "local_metamix": (ORANGE, "<", True),
}
COLOURS = {name: colour for name, (colour, _, _) in LOOKS.items()}
#: Of series that are no methods, such as presets and datasets.
SERIES = [BLUE, ORANGE, GREEN, PURPLE, SKY, GREY]


def method_look(name: str) -> dict[str, Any]:
    """Return colour and marker of a method, as options of `Axes.plot`.

    Args:
        name: of configs/method, or its title in tables. A method without a look of its own is a grey circle.
    """
    colour, marker, filled = LOOKS.get(name) or BY_TITLE.get(name) or (GREY, "8", True)
    return {"color": colour, "marker": marker} | ({} if filled else {"markerfacecolor": "white"})


#: The same by title. MAML's C-Mixup has the title of C-Mixup, and its colour.
BY_TITLE = {method_title(name): look for name, look in reversed(LOOKS.items())}
