"""The report of a quantisation for the browser: one self-contained file with a picture of the error by layer.

It looks like the report of a profile, and shares its style.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.driver.profile import report as profile_report
from tilewright.driver.quantization.picture import COLOURS, errors_picture
from tilewright.relay.quantize.dialect import HALF
from tilewright.relay.quantize.study import LayerReport, Quantised
from tilewright.support.cbuild import write_bytes

_TEMPLATE = Path(__file__).resolve().parent / "template"
_HALF_KEY = f'<span><i class="{COLOURS[HALF]}"></i>{HALF}</span>'


def write_report(found: Quantised, model: str, path: str | Path) -> None:
    """Write the report, whole or not at all."""
    write_bytes(Path(path), report_html(found, model).encode())


def report_html(found: Quantised, model: str) -> str:
    """The report as one page."""
    quantised = [one for one in found.layers if one.quantised]
    parts = {
        "STYLE": profile_report.template_text("report.css")
        + (_TEMPLATE / "quantization.css").read_text("utf-8"),
        "MODEL": escape(model),
        "VERSION": escape(__version__),
        "SUMMARY": escape(summary(found)),
        "JUMP": escape(jump_sentence(found)),
        "TILES": "".join(
            _tile(*one)
            for one in (
                ("layers on integers", f"{len(quantised)} of {len(found.layers)}"),
                ("multiplications on integers", f"{share_of_work(found):.1%}"),
                *_qualities(found),
                ("samples", str(found.samples)),
                ("method", found.method + (", biases corrected" if found.bias_corrected else "")),
            )
        ),
        "HALF": _HALF_KEY if any(one.computed_in == HALF for one in found.layers) else "",
        "PICTURE": errors_picture(found.layers, None if found.jump is None else found.jump.name),
        "ROWS": "".join(_row(one, found) for one in found.layers),
    }
    return profile_report.filled((_TEMPLATE / "quantization.html").read_text("utf-8"), parts)


def share_of_work(found: Quantised) -> float:
    """The share of the multiplications that are on integers."""
    total = sum(one.multiplications for one in found.layers)
    return sum(one.multiplications for one in found.layers if one.quantised) / max(total, 1)


def summary(found: Quantised) -> str:
    """What the quantised model loses, beside its budget."""
    verdict = "within" if found.within_budget else "OVER"
    if found.quality.accuracy is None or found.exact.accuracy is None:
        return (
            f"The outputs differ from the float32 model's by {found.quality.error:.2%} of their magnitude, "
            f"{verdict} the budget of {found.budget:.2%}."
        )
    return (
        f"Accuracy is {found.quality.accuracy:.2%} after {found.exact.accuracy:.2%} in float32, "
        f"{verdict} the budget of {found.budget:.2%}; the outputs differ by {found.quality.error:.2%}."
    )


def jump_sentence(found: Quantised) -> str:
    """The first layer whose error jumps."""
    if found.jump is None:
        return "The error grows slowly from layer to layer: there is no jump."
    return (
        f"The error jumps first at {found.jump.name} ({found.jump.operator}): it is "
        f"{found.jump.error_along:.1%} of the layer's result there."
    )


def _qualities(found: Quantised) -> list[tuple[str, str]]:
    if found.quality.accuracy is None or found.exact.accuracy is None:
        return [("error of the outputs", f"{found.quality.error:.2%}")]
    return [
        ("accuracy in float32", f"{found.exact.accuracy:.2%}"),
        ("accuracy on integers", f"{found.quality.accuracy:.2%}"),
    ]


def _tile(name: str, value: str) -> str:
    return f'<div class="tile quality"><b>{escape(value)}</b><span>{escape(name)}</span></div>'


def _row(one: LayerReport, found: Quantised) -> str:
    largest = max((layer.output_error for layer in found.layers), default=0.0) or 1.0
    width = 100 * min(one.output_error / largest, 1.0)
    cells: list[Any] = [
        f"<td class='name'>{escape(one.name)}</td>",
        f"<td>{escape(one.operator)}</td>",
        f"<td>{escape(str(one.shape))}</td>",
        f"<td class='number'>{one.decibels:.1f}</td>",
        f"<td class='number'>{one.output_error:.2%}<i style='width:{width:.1f}%'></i></td>",
        f"<td class='number'>{one.error_along:.2%}</td>",
        f"<td><em class='{COLOURS[one.computed_in]}'>{escape(one.computed_in)}</em></td>",
        f"<td class='why'>{escape(one.why)}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"
