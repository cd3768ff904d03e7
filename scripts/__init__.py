"""Commands of the reproduction; each runs as `python -m scripts.<name>`, and `--help` says what it takes."""

import sys

from scripts.driver.interrupted import hear_sigterm, say_interrupted

#: Commands of earlier versions with what does their work now.
SUCCESSORS: dict[str, str] = {}

if sys.argv[0] == "-m":  # what it is while Python looks for the command
    sys.excepthook = say_interrupted
    hear_sigterm()
    for _word in sys.orig_argv:
        if (_old := _word.removeprefix("scripts.")) != _word and _old in SUCCESSORS:
            raise SystemExit(f"error: python -m scripts.{_old} is now python -m scripts.{SUCCESSORS[_old]}")
