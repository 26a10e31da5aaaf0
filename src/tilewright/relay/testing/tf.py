"""Helpers for tests of TensorFlow models. TensorFlow is imported when one of them is called."""

from __future__ import annotations

from typing import Any

from tilewright.relay.frontend.tensorflow.package import tensorflow_package
from tilewright.runtime.ndarray import NDArray


def convert_to_list(x: Any) -> list[Any]:
    """A list, or a list of one."""
    return x if isinstance(x, list) else [x]


def ProcessGraphDefParam(graph_def: Any) -> Any:
    """A graph; the bytes of one are parsed."""
    proto = tensorflow_package().compat.v1.GraphDef
    if isinstance(graph_def, proto):
        return graph_def
    parsed = proto()
    parsed.CopyFrom(graph_def)
    return parsed


def AddShapesToGraphDef(session: Any, out_node: Any) -> Any:
    """The frozen graph of a session, with the shapes of all outputs of nodes."""
    graph_def = session.graph.as_graph_def(add_shapes=True)
    freeze = tensorflow_package().compat.v1.graph_util.convert_variables_to_constants
    return freeze(session, graph_def, convert_to_list(out_node))


def vmobj_to_list(o: Any) -> list[Any]:
    """The tensors of a result of the virtual machine, whatever they are nested in, as arrays."""
    if isinstance(o, NDArray):
        return [o.numpy()]
    return [one for part in o for one in vmobj_to_list(part)]
