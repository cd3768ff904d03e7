"""Commands of the reproduction; each runs as `python -m scripts.<name>`, and `--help` says what it takes."""

import sys

from scripts.driver.signals import handle_sigterm, print_interrupted

if sys.argv[0] == "-m":  # what it is while Python looks for the command: imports take seconds
    sys.excepthook = print_interrupted
    handle_sigterm()
