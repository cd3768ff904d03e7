"""Typeset the formulas of the pages as MathML when the site is built.

Every current browser draws MathML by itself, so the site needs no script, no font and no other host for its maths. The
conversion is that of the package latex2mathml.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def draw_inline(writer: Any, node: nodes.Element) -> None:
    """Write a formula inside a sentence."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def draw_display(writer: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer as `mathml`; Sphinx calls this."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
