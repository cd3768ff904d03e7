"""Commands of the reproduction; each runs as `python -m scripts.<name>`."""

import sys

from scripts.driver.interrupted import hear_sigterm, say_interrupted

if sys.argv[0] == "-m":  # what it is while Python looks for the command
    sys.excepthook = say_interrupted
    hear_sigterm()
