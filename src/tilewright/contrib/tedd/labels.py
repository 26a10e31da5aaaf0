"""What stands in the nodes of the pictures: HTML tables, as Graphviz takes them."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from tilewright.contrib.tedd.description import get_or_create_dot_id, get_port_id, leaf_itervars
from tilewright.contrib.tedd.graph import DotGraph

_KINDS: tuple[tuple[str, str], ...] = (
    ("kDataPar", "#FFFFFF"),
    ("kThreadIndex", "#2980B9"),
    ("kCommReduce", "#FAD7A0"),
    ("kOrdered", "#D35400"),
    ("kOpaque", "#ABB2B9"),
    ("kUnrolled", "#D2B4DE"),
    ("kVectorized", "#AED6F1"),
    ("kParallelized", "#F5B7B1"),
    ("kTensorized", "#A9DFBF"),
)
"""The name and colour of each kind of axis, by its number."""


def get_itervar_type_info(iter_type: int) -> tuple[str, str]:
    """The name and the colour of a kind of axis."""
    return _KINDS[iter_type] if 0 <= iter_type < len(_KINDS) else ("kUnknown", "#000000")


def linebrk(s: str, n: int) -> str:
    """A text as HTML, with a break after every ``n`` characters."""
    pieces = [s[start : start + n] for start in range(0, len(s), n)] or [""]
    return "<br/>".join(html.escape(piece) for piece in pieces)


def get_itervar_label_color(itervar: Mapping[str, Any], iv_type: int) -> tuple[str, str]:
    """What stands in the row of an axis, and the row's colour: name, kind, thread, range."""
    kind, color = get_itervar_type_info(iv_type)
    lines = [html.escape(f"{itervar['name']}({kind})")]
    if itervar["thread"]:
        lines.append(html.escape(f"bound to {itervar['thread']}"))
    if itervar["tensor_intrin"]:
        lines.append(linebrk(f"tensorized by {itervar['tensor_intrin']}", 40))
    if itervar["range"]:
        lines.append(html.escape(itervar["range"]))
    return "<br/>".join(lines), color


def itervar_label(itervar: Mapping[str, Any], index: Any, index_color: str, label: str) -> str:
    """The row of an axis in the table of its stage."""
    port = html.escape(str(itervar.get("dot_id", itervar["name"])))
    return f'<TR><TD BGCOLOR="{index_color}">{index}</TD><TD BGCOLOR="white" PORT="{port}">{label}</TD></TR>'


def stage_label(stage: Mapping[str, Any]) -> str:
    """The name of a stage, and where its values are."""
    scope = f"<br/>Scope: {html.escape(stage['scope'])}" if stage["scope"] else ""
    inlined = "<br/>inlined" if stage["inlined"] else ""
    return f"{html.escape(stage['name'])}{scope}{inlined}"


def stage_table(stage: Mapping[str, Any]) -> str:
    """The node of a stage in the tree: its name, its loops from the outermost, and what it computes."""
    rows = []
    for index, axis in enumerate(leaf_itervars(stage)):
        text, color = get_itervar_label_color(axis, axis["itervar_type"])
        rows.append(itervar_label(axis, index, color, text))
    head = f'<TR><TD COLSPAN="2" BGCOLOR="grey" PORT="stage">{stage_label(stage)}</TD></TR>'
    body = f'<TR><TD COLSPAN="2">{linebrk(stage["op"], 160)}</TD></TR>'
    return f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">{head}{"".join(rows)}{body}</TABLE>>'


def flow_table(stage: Mapping[str, Any]) -> str:
    """The node of a stage in the flow of tensors: a port for each output and each input."""
    outputs, inputs = (
        "".join(f'<TD PORT="{get_port_id(is_input, index)}">{name}{index}</TD>' for index in range(count))
        for is_input, count, name in (
            (False, len(stage["output_tensors"]), "out"),
            (True, len(stage["input_tensors"]), "in"),
        )
    )
    span = max(len(stage["output_tensors"]), len(stage["input_tensors"]), 1)
    name = f'<TR><TD COLSPAN="{span}" BGCOLOR="grey">{stage_label(stage)}</TD></TR>'
    rows = [f"<TR>{outputs}</TR>" if outputs else "", name, f"<TR>{inputs}</TR>" if inputs else ""]
    return f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">{"".join(rows)}</TABLE>>'


def legend_label() -> str:
    """The colours of the kinds of axes."""
    rows = "".join(f'<TR><TD BGCOLOR="{color}">{name}</TD></TR>' for name, color in _KINDS)
    return f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">{rows}</TABLE>>'


def legend_dot(g: DotGraph) -> None:
    """Add the legend, in a frame of its own."""
    with g.cluster("legend"):
        g.attr(label="Legend")
        g.node("legend", shape="none", margin="0", label=legend_label())


def node_name(described: dict[str, Any]) -> str:
    """The name of a described object, which it must have."""
    return get_or_create_dot_id(described, assert_on_missing=True)
