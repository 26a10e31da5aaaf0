"""The report for the browser: one self-contained file.

The measurements are embedded as JSON, which the page's script draws. Everything that comes from the model is data and
becomes text on the page, never markup. Code is compressed, and unpacked when it is viewed.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.driver.profile.collect import CODE_FORMS, ProfileReport, limits_json
from tilewright.driver.profile.graphs import DrawnGraph
from tilewright.driver.profile.kernels import Kernel
from tilewright.driver.profile.layout import NODE_HEIGHT, NODE_WIDTH
from tilewright.driver.profile.table import above_limit_lines
from tilewright.support.cbuild import write_bytes

_TEMPLATE = Path(__file__).resolve().parent / "template"
_SCRIPTS = ("tools.js", "charts.js", "graph.js", "code.js", "choices.js", "backends.js", "page.js")


def write_report(report: ProfileReport, path: str | Path) -> None:
    """Write the report, whole or not at all."""
    write_bytes(Path(path), report_html(report).encode())


def report_html(report: ProfileReport) -> str:
    """The report as one page."""
    parts = {
        "STYLE": template_text("report.css"),
        "SCRIPT": "\n".join(template_text(name) for name in _SCRIPTS),
        "DATA": embedded_json(report_data(report)),
    }
    return filled(template_text("report.html"), parts)


def filled(page: str, parts: Mapping[str, str]) -> str:
    """A template with its parts in the places that name them."""
    pieces = []
    # One pass over the template: what is put in is not searched again.
    while True:
        before, mark, rest = page.partition("{{")
        pieces.append(before)
        if not mark:
            return "".join(pieces)
        name, _, page = rest.partition("}}")
        pieces.append(parts[name])


def template_text(name: str) -> str:
    """A file of the template."""
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def embedded_json(value: Any) -> str:
    """JSON that can be embedded in a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def report_data(report: ProfileReport) -> dict[str, Any]:
    """The data that the page draws."""
    kernels = report.kernels.kernels()
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    limits = report.kernels.limits
    before = report.before_fusion
    return {
        "model": report.model,
        "target": report.target,
        "executor": report.executor,
        "version": report.version,
        "system": report.system,
        "inputs": [one.text() for one in report.inputs],
        "outputs": [one.text() for one in report.outputs],
        "runSeconds": report.kernels.run_seconds,
        "kernelSeconds": report.kernels.total_seconds,
        "runs": report.kernels.runs,
        "flops": report.kernels.flops,
        "operations": report.kernels.operations,
        "notes": above_limit_lines(report.kernels),
        "ofLimit": report.kernels.of_limit,
        "limits": None if limits is None else limits_json(limits),
        "kernels": [_kernel(kernel) for kernel in kernels],
        "steps": [
            {
                "node": step.node,
                "kernel": numbers[step.kernel],
                "seconds": step.seconds,
                "modelNodes": step.model_nodes,
                "shapes": step.shapes,
            }
            for step in report.kernels.steps
        ],
        "memory": {
            "arena": report.memory.arena_bytes,
            "peak": report.memory.peak_bytes,
            "parameters": report.memory.parameter_bytes,
            "steps": report.memory.steps,
            "live": report.memory.live_bytes,
            "blocks": [
                [block.offset, block.size_bytes, block.first, block.last, block.name]
                for block in report.memory.blocks
            ],
        },
        "graphs": {
            "before": None if before is None else _graph(before, numbers),
            "after": _graph(report.after_fusion, numbers),
        },
        "nodeSize": [NODE_WIDTH, NODE_HEIGHT],
        "compiling": None
        if report.compiling is None
        else {
            "seconds": report.compiling.seconds,
            "passes": [[one.name, one.runs, one.seconds] for one in report.compiling.totals],
        },
        "choices": None
        if report.choices is None
        else [
            report.choices[kernel.name].as_json() if kernel.name in report.choices else None
            for kernel in kernels
        ],
        "partition": None if report.partition is None else report.partition.as_json(),
        "forms": CODE_FORMS,
        "code": [
            {form: packed(text) for form, text in report.code[kernel.name].items()}
            if report.code is not None and kernel.name in report.code
            else None
            for kernel in kernels
        ],
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "shortName": kernel.short_name,
        "calls": kernel.calls,
        "seconds": kernel.seconds,
        "share": kernel.share,
        "flops": kernel.flops,
        "operations": kernel.operations,
        "arithmetic": kernel.steps[0].arithmetic,
        "bytes": kernel.size_bytes,
        "gflops": kernel.gflops_per_second,
        "gbytes": kernel.gigabytes_per_second,
        "ofLimit": kernel.of_limit,
        "boundBy": kernel.bound_by,
        "modelNodes": kernel.model_nodes,
        "shapes": list(dict.fromkeys(shape for step in kernel.steps for shape in step.shapes)),
    }


def _graph(graph: DrawnGraph, numbers: dict[str, int]) -> dict[str, Any]:
    return {
        "width": graph.layout.width,
        "height": graph.layout.height,
        "nodes": [
            {
                "label": node.label,
                "detail": node.detail,
                "modelNodes": node.model_nodes,
                "kernel": numbers.get(node.kernel or ""),
                "kind": node.kind,
                "step": node.step,
                "backend": node.backend,
                "at": place,
            }
            for node, place in zip(graph.nodes, graph.layout.positions, strict=True)
        ],
        "edges": [
            [source, target, path]
            for (source, target), path in zip(graph.edges, graph.layout.paths, strict=True)
        ],
    }


def packed(text: str) -> str:
    """Text compressed, as the page unpacks it."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
