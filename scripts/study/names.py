"""How the study's pages call methods and conditions."""

from __future__ import annotations

from scripts.records import names
from scripts.study.rules import Condition

TITLES = {"cmixup": "C-Mixup, input", "cmixup_hidden": "C-Mixup, hidden"}
DECIMALS = 3
CONTROL = "resample"  # which mixes nothing


def title(method: str) -> str:
    """Return how pages call a method of the rules."""
    return TITLES.get(method) or names.method_title(method)


def heading(condition: Condition) -> str:
    """Return the heading of a condition."""
    rows = condition.train_rows
    text = "All rows (3,000 for training at most)" if rows is None else f"{rows} training rows"
    text += "" if condition.val_rows is None else f", {condition.val_rows} for validation"
    whose = "the labels of both" if condition.label_noise_val else "their labels"
    return f"{text}, noise of {condition.label_noise:g} std on {whose}" if condition.label_noise else text


def validated(condition: Condition) -> str:
    """Return what a condition validates on."""
    rows = "a fifth of the table" if condition.val_rows is None else f"{condition.val_rows} rows"
    return f"{rows}, {'noisy' if condition.label_noise_val else 'clean'}"
