"""The three pictures of a schedule."""

from __future__ import annotations

from typing import Any

from tilewright.contrib.tedd.description import dom_path_to_string, extract_dom_for_viz, get_port_id
from tilewright.contrib.tedd.graph import create_graph, dump_graph
from tilewright.contrib.tedd.labels import (
    flow_table,
    get_itervar_label_color,
    legend_dot,
    node_name,
    stage_label,
    stage_table,
)
from tilewright.te.schedule.schedule import Schedule


def viz_schedule_tree(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> Any:
    """Stages with their loops; an edge goes from a stage to the loop in which it is computed, or to the root."""
    graph = create_graph("Schedule Tree")
    described = extract_dom_for_viz(sch, need_range=False)
    legend_dot(graph)
    graph.node("ROOT", shape="oval", label="ROOT", fontcolor="white", style="filled", fillcolor="black")
    for stage in described["stages"]:
        graph.node(node_name(stage), shape="none", margin="0", label=stage_table(stage))
    for stage in described["stages"]:
        place = stage["attaching_to"]
        head = "ROOT"
        if place:
            head = f"{dom_path_to_string(place[:1], 'Stage')}:{dom_path_to_string(place, 'IterVar')}"
        color = "#A0A0A0" if stage["inlined"] else "#000000"
        graph.edge(f"{node_name(stage)}:stage", head, color=color)
    return dump_graph(graph.source, show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> Any:
    """The axes of each stage with their ranges, and the splits, fusions and rebases that made them."""
    graph = create_graph("IterVar Relationship Graph", "TB")
    described = extract_dom_for_viz(sch)
    legend_dot(graph)
    for stage in described["stages"]:
        with graph.cluster(node_name(stage)):
            graph.attr(label=stage["name"])
            graph.node(node_name(stage), shape="none", label=f"<{stage_label(stage)}>")
            for axis in stage["all_itervars"]:
                text, color = get_itervar_label_color(axis, axis["itervar_type"])
                cell = f'<TR><TD BGCOLOR="{color}" PORT="itervar">{text}</TD></TR>'
                graph.node(node_name(axis), shape="none", margin="0", label=_table(cell))
            for relation in stage["relations"]:
                _relation(graph, relation)
    return dump_graph(graph.source, show_svg, dot_file_path, output_dot_string)


def _table(rows: str) -> str:
    return f'<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">{rows}</TABLE>>'


def _relation(graph: Any, relation: dict[str, Any]) -> None:
    """The node of a relation, with ports, and its edges."""
    inputs, outputs = (
        "".join(f'<TD PORT="{port}">{port}</TD>' for port in relation[side]) for side in ("inputs", "outputs")
    )
    span = max(len(relation["inputs"]), len(relation["outputs"]), 1)
    name = f'<TR><TD COLSPAN="{span}" BGCOLOR="#F7DC6F">{relation["kind"]}</TD></TR>'
    rows = [f"<TR>{inputs}</TR>" if inputs else "", name, f"<TR>{outputs}</TR>"]
    own = relation["dot_id"]
    graph.node(own, shape="none", margin="0", label=_table("".join(rows)))
    for port, place in relation["inputs"].items():
        graph.edge(f"{dom_path_to_string(place, 'IterVar')}:itervar", f"{own}:{port}")
    for port, place in relation["outputs"].items():
        graph.edge(f"{own}:{port}", f"{dom_path_to_string(place, 'IterVar')}:itervar")


def viz_dataflow_graph(
    sch: Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> Any:
    """Stages and the tensors between them."""
    graph = create_graph("Dataflow Graph", "LR")
    described = extract_dom_for_viz(sch, need_range=False)
    for stage in described["stages"]:
        graph.node(node_name(stage), shape="none", margin="0", label=flow_table(stage))
        for tensor in stage["output_tensors"]:
            text = f"{tensor['name']}<br/>{tensor['shape']}<br/>{tensor['data_type']}"
            graph.node(node_name(tensor), shape="box", style="rounded", label=f"<{text}>")
    for stage in described["stages"]:
        for index, tensor in enumerate(stage["output_tensors"]):
            graph.edge(f"{node_name(stage)}:{get_port_id(False, index)}", node_name(tensor))
        for index, tensor in enumerate(stage["input_tensors"]):
            graph.edge(node_name(tensor), f"{node_name(stage)}:{get_port_id(True, index)}")
    return dump_graph(graph.source, show_svg, dot_file_path, output_dot_string)
