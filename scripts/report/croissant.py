"""Croissant metadata of what is published here: results/croissant.json, for tools that read data sets by it.

Source: the Croissant format 1.0 of MLCommons. Files of numbers are described by their columns; runs and predictions, of
which there are many files, as two sets. `make release-check` has MLCommons' own library read it.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from scripts.records.experiment import RESULTS
from scripts.records.register import writes

FILE = "croissant.json"
VOCABULARY = "http://mlcommons.org/croissant/"
TERMS = ("citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes",
         "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
         "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
         "equivalentProperty")  # fmt: skip
TABLES = {
    "theory.csv": "Simulations of the paper's three theorems: one score of one seed a row.",
    "invariance.csv": "Divergence of representations between domains: one run a row.",
    "spurious.csv": "Errors of ERM on RCF-MNIST with the colours of training and with the other ones: one run a row.",
}
KINDS = {"i": "sc:Integer", "f": "sc:Float", "b": "sc:Boolean", "O": "sc:Text"}


@writes(*(f"results/{name}" for name in TABLES), "pyproject.toml")
def croissant_texts() -> dict[str, str]:
    """Return the metadata as JSON-LD, by its path below results/."""
    return {FILE: json.dumps(describe_results(RESULTS), indent=1) + "\n"}


def describe_results(results: Path) -> dict[str, Any]:
    """Return the metadata of a folder of results."""
    version = tomllib.loads((results.parent / "pyproject.toml").read_text())["project"]["version"]
    return {
        "@context": make_context(),
        "@type": "sc:Dataset",
        "name": "cmixup-results",
        "description": "Every run of a reproduction of C-Mixup and of a study of mixing on real tables: configuration, "
        "scores and provenance of each seed, and its predictions.",
        "conformsTo": f"{VOCABULARY}1.0",
        "license": "https://spdx.org/licenses/MIT.html",
        "url": "https://arxiv.org/abs/2210.05775",
        "version": version,
        "creator": {"@type": "sc:Organization", "name": "The cmixup authors"},
        "citeAs": "The cmixup authors: C-Mixup and mixing for regression in PyTorch. CITATION.cff has the entry.",
        "distribution": [
            *(describe_file(results / name) for name in TABLES),
            describe_set("runs", "runs/**/*.jsonl*", "application/jsonlines", "Reports of runs, one a seed."),
            describe_set("predictions", "predictions/**/*", "application/x-xz", "Predictions of runs, in packed form."),
        ],
        "recordSet": [describe_table(results / name, text) for name, text in TABLES.items()],
    }


def make_context() -> dict[str, Any]:
    """Return the names that the format gives its terms."""
    plain = {"@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/",
             "cr": VOCABULARY, "rai": f"{VOCABULARY}RAI/", "dct": "http://purl.org/dc/terms/",
             "conformsTo": "dct:conformsTo"}  # fmt: skip
    typed = {name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")}
    terms = {name: f"cr:{name}" for name in TERMS}
    return plain | typed | terms | {"dataType": {"@id": "cr:dataType", "@type": "@vocab"}}


def describe_file(path: Path) -> dict[str, Any]:
    """Return the description of one CSV file, with the SHA-256 of its bytes."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"@type": "cr:FileObject", "@id": path.name, "name": path.name, "contentUrl": path.name,
            "encodingFormat": "text/csv", "sha256": digest}  # fmt: skip


def describe_set(name: str, pattern: str, kind: str, text: str) -> dict[str, Any]:
    """Return the description of all files that fit a pattern."""
    return {"@type": "cr:FileSet", "@id": name, "name": name, "includes": pattern, "encodingFormat": kind,
            "description": text}  # fmt: skip


def describe_table(path: Path, text: str) -> dict[str, Any]:
    """Return the description of the rows of a CSV file: a field for each column."""
    name, table = path.stem, pd.read_csv(path)
    fields = [
        {"@type": "cr:Field", "@id": f"{name}/{column}", "name": str(column),
         "dataType": KINDS.get(table[column].dtype.kind, "sc:Text"),
         "source": {"fileObject": {"@id": path.name}, "extract": {"column": str(column)}}}
        for column in table.columns
    ]  # fmt: skip
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": text, "field": fields}
