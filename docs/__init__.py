"""Commands of pages, `python -m docs.own_data`."""

import scripts  # noqa: F401 - one line where packages are missing
