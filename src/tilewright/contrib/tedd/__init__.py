"""Pictures of schedules: the tree of stages, the axes and how they came about, and the flow of tensors.

Each picture is a text in Graphviz's language (DOT), which ``dot_file_path`` stores, ``output_dot_string`` returns and
``show_svg`` draws where Graphviz is installed.
"""

from tilewright.contrib.tedd.description import (
    ObjectManager,
    dom_path_to_string,
    dump_json,
    extract_dom_for_viz,
    get_or_create_dot_id,
    get_port_id,
    insert_dot_id,
    leaf_itervars,
)
from tilewright.contrib.tedd.graph import DotGraph, create_graph, dump_graph
from tilewright.contrib.tedd.labels import (
    get_itervar_label_color,
    get_itervar_type_info,
    itervar_label,
    legend_dot,
    legend_label,
    linebrk,
    stage_label,
)
from tilewright.contrib.tedd.pictures import (
    viz_dataflow_graph,
    viz_itervar_relationship_graph,
    viz_schedule_tree,
)

__all__ = [
    "DotGraph",
    "ObjectManager",
    "create_graph",
    "dom_path_to_string",
    "dump_graph",
    "dump_json",
    "extract_dom_for_viz",
    "get_itervar_label_color",
    "get_itervar_type_info",
    "get_or_create_dot_id",
    "get_port_id",
    "insert_dot_id",
    "itervar_label",
    "leaf_itervars",
    "legend_dot",
    "legend_label",
    "linebrk",
    "stage_label",
    "viz_dataflow_graph",
    "viz_itervar_relationship_graph",
    "viz_schedule_tree",
]
