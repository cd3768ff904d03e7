"""The site: README, docs/ and results/ as one, built by Sphinx, which needs no other host to be built or read.

Sphinx is chosen because it has outlived its themes and works from disk: its search is a script, without a server or a
worker. The source is the whole repository, so that pages link to files as they do on a forge.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)\)")
INTERVAL = re.compile(r"([+-]?[\d.]+) \[([+-]?[\d.]+), ([+-]?[\d.]+)\]")

project = "cmixup"
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # mathml.py, beside this file
include_patterns = ["*.md", "docs/*.md", "results/**.md"]
exclude_patterns = [".*", "outputs", "data", "build", "dist", "wandb", "results/predictions", "results/runs"]
html_theme = "furo"
html_static_path, html_css_files, html_js_files = ["site.css", "site.js"], ["site.css"], ["site.js"]
default_role = "code"  # of docstrings, where a name stands between single backticks
html_title = "cmixup"
html_copy_source, html_use_index = False, False
html_show_sphinx, html_show_copyright = False, False
html_permalinks_icon = "#"
pygments_style, pygments_dark_style = "default", "monokai"
myst_heading_anchors = 4
myst_links_external_new_tab = False
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
suppress_warnings = ["toc.not_included", "myst.header"]  # tables are reached from the map, and begin one level lower

#: The pages of the navigation by kind.
NAVIGATION = {
    "Learn": ["docs/index", "docs/tutorial", "docs/bandwidth"],
    "Use": ["docs/scikit_learn", "docs/own_data", "docs/recipes", "docs/command_line"],
    "Evidence": ["results/README", "results/findings", "results/study", "results/study_more", "results/theory",
                 "results/estimators", "results/speed", "docs/reproducing", "docs/data", "results/reliability"],
    "Reference": ["docs/api", "docs/glossary", "CHANGELOG"],
    "Develop": ["docs/new_method", "docs/design", "CONTRIBUTING"],
}  # fmt: skip


def prepare(_: Any, name: str, source: list[str]) -> None:
    """Append the navigation to the first page, unlink folders, and keep each interval on one line."""
    if name == root_doc:
        source[0] += "\n```{toctree}\n:hidden:\n\nHome <self>\n```\n"
        for kind, pages in NAVIGATION.items():
            tree = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {kind}\n\n{tree}\n```\n"
    here = (ROOT / name).parent

    def without_folders(link: re.Match[str]) -> str:
        return link[1] if (here / link[2]).is_dir() else link[0]

    lines = LINK.sub(without_folders, source[0]).split("\n")
    kept = (INTERVAL.sub("\\1\u00a0[\\2,\u00a0\\3]", x).replace(" n = ", " n\u00a0=\u00a0") for x in lines)
    source[0] = "\n".join(new if new.startswith("|") else x for new, x in zip(kept, lines, strict=True))


def mark_examples(*given: Any) -> None:
    """Mark indented lines of a docstring that follow an empty one as code."""
    lines = given[-1]
    for k in reversed(range(1, len(lines))):
        if lines[k].startswith("    ") and not lines[k - 1] and not lines[max(k - 2, 0)].startswith("    "):
            lines[k:k] = ["::", ""]


def add_index(app: Any, _: Any) -> None:
    """Lead from the folder to its first page."""
    page = f'<meta http-equiv="refresh" content="0; url={root_doc}.html"><title>{project}</title>\n'
    (Path(app.outdir) / "index.html").write_text(page)


def setup(app: Any) -> None:
    """Connect what is above; Sphinx calls this."""
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", mark_examples, priority=1)  # before sections are told
    app.connect("build-finished", add_index)
