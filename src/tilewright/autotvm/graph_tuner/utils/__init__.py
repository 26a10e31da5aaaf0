"""Graphs of operators as lists of nodes."""

from tilewright.autotvm.graph_tuner.utils import traverse_graph, utils
from tilewright.autotvm.graph_tuner.utils.traverse_graph import (
    expr2graph,
    get_direct_ancestor,
    get_in_nodes,
    get_out_nodes,
)
from tilewright.autotvm.graph_tuner.utils.utils import (
    bind_inputs,
    has_multiple_inputs,
    is_boundary_node,
    is_skipped_node,
)
