"""The error by layer as a picture: a column for each layer, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tilewright.relay.quantize.dialect import HALF
from tilewright.relay.quantize.study import FLOAT, INTEGERS, LayerReport

COLOURS = {INTEGERS: "int", HALF: "half", FLOAT: "float"}
"""Classes of the style sheet, by what a layer is computed in."""

WIDTH, HEIGHT = 1180.0, 260.0
LEFT, BOTTOM, TOP = 56.0, 34.0, 26.0
LEAST = 1e-4
"""Errors below this have no height."""
_LABELLED = 24
"""With more layers than this, only every so-many-th has its number below."""


def errors_picture(layers: Sequence[LayerReport], jump: str | None) -> str:
    """An SVG drawing: the error that has built up at each layer, and with a dot that of the outputs if only this layer
    were quantised."""
    if not layers:
        return ""
    top = max(max(one.error_along, one.output_error) for one in layers if math.isfinite(one.error_along))
    decades = range(round(math.log10(LEAST)), max(math.ceil(math.log10(max(top, 1e-3))), -2) + 1)
    plot = HEIGHT - BOTTOM - TOP

    def height(error: float) -> float:
        share = (math.log10(max(error, LEAST)) - decades[0]) / (decades[-1] - decades[0])
        return plot * min(max(share, 0.0), 1.0)

    parts = [f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="Error by layer">']
    for decade in decades:
        y = HEIGHT - BOTTOM - height(10.0**decade)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{100 * 10.0**decade:g} %</text>'
        )
    step = (WIDTH - LEFT) / len(layers)
    bar = min(step * 0.7, 46.0)
    every = math.ceil(len(layers) / _LABELLED)
    for place, one in enumerate(layers):
        middle = LEFT + (place + 0.5) * step
        kind = "jump" if one.name == jump else COLOURS[one.computed_in]
        size = height(one.error_along)
        base = HEIGHT - BOTTOM
        title = (
            f"{one.name}: {one.error_along:.2%} has built up here; "
            f"{one.output_error:.2%} at the outputs if only this layer is quantised"
        )
        parts.append(f"<g><title>{escape(title)}</title>")
        parts.append(
            f'<rect class="{kind}" x="{middle - bar / 2:.1f}" y="{base - size:.1f}" width="{bar:.1f}" '
            f'height="{size:.1f}" rx="2"/>'
        )
        parts.append(f'<circle cx="{middle:.1f}" cy="{base - height(one.output_error):.1f}" r="3.5"/></g>')
        if place % every == 0:
            parts.append(
                f'<text x="{middle:.1f}" y="{base + 16:.1f}" text-anchor="middle">{place + 1}</text>'
            )
        if kind == "jump":
            # Near the right border, the words end at the column instead of being centred on it.
            anchor = "end" if middle > WIDTH - 120 else "start" if middle < LEFT + 60 else "middle"
            parts.append(
                f'<text class="jump" x="{middle:.1f}" y="{base - size - 8:.1f}" text-anchor="{anchor}">'
                "jumps here</text>"
            )
    return "".join([*parts, "</svg>"])
