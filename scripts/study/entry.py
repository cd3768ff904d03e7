"""The old name of `scripts.study.submission`: published records name its `from_file` as their method's `_target_`."""

from scripts.study.submission import from_file

__all__ = ["from_file"]
