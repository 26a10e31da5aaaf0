"""Graphs as text are read, and everything wrong with one is an error that says what."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.relay.backend.graph import Entry
from tilewright.relay.backend.graph_read import read_graph
from tilewright.support.errors import ModelError


def test_reads_nodes_and_tensors(model: Any) -> None:
    """Nodes name the tensors they read and give; inputs and outputs are in the graph's order."""
    graph = read_graph(model.graph)
    assert [node.name for node in graph.nodes][:3] == ["x", "w", "dense"]
    assert graph.nodes[5].inputs == [Entry(4)] and len(graph.nodes[5].outputs) == 2
    assert graph.nodes[6].is_flat and not graph.nodes[5].is_flat
    assert graph.nodes[4].is_view and graph.nodes[4].view_offsets == [0]
    assert graph.inputs == [0, 1]
    assert graph.outputs == [Entry(5), Entry(5, 1), Entry(6), Entry(0), Entry(6)]
    assert graph.type_of(Entry(1)).concrete_shape == (64, 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda graph: graph.pop("nodes"), "no list 'nodes'"),
        (lambda graph: graph.update(heads=[]), "no outputs"),
        (lambda graph: graph.update(heads=[[7, 0, 0]]), "an output of the graph"),
        (lambda graph: graph.update(heads=[[True, 0, 0]]), "an output of the graph"),
        (
            lambda graph: graph["nodes"][3].update(inputs=[[3, 0, 0]]),
            "an input of the graph's node 'softmax'",
        ),
        (lambda graph: graph["nodes"][3].update(inputs=4), "inputs of the graph's node 'softmax'"),
        (lambda graph: graph["nodes"][3].update(op="conv"), "node 3 of the graph is neither"),
        (lambda graph: graph["nodes"][3].update(attrs={}), "does not name its function"),
        (lambda graph: graph["nodes"][5]["attrs"].update(num_outputs="-2"), "has -2 outputs"),
        (lambda graph: graph.update(arg_nodes=[2]), "2, which is not an input node"),
        (lambda graph: graph.update(arg_nodes=[1]), "lacks the input node 'x'"),
        (
            lambda graph: graph["nodes"][4].update(inputs=[]),
            "'reshape' is a view of a tensor, but has no input",
        ),
        (
            lambda graph: graph["nodes"][4].update(inputs=[[1, 0, 0]]),
            "a view of another size than its tensor",
        ),
        (lambda graph: graph["attrs"].pop("shape"), "'shape' is not a list of 8 values"),
        (lambda graph: graph["attrs"]["shape"][1].pop(), "'shape' is not a list of 8 values"),
        (lambda graph: graph["attrs"]["shape"][1].__setitem__(0, [-1]), "constant sizes are needed"),
        (lambda graph: graph["attrs"]["shape"][1].__setitem__(0, [2**40, 2**40]), "does not fit any memory"),
        (lambda graph: graph["attrs"]["dltype"][1].__setitem__(0, "flot"), "an unknown data type"),
    ],
)
def test_errors(model: Any, change: Any, message: str) -> None:
    """Each defect is named."""
    graph = json.loads(model.graph)
    change(graph)
    with pytest.raises(ModelError, match=message):
        read_graph(json.dumps(graph))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_changed_texts(model: Any, data: st.DataObject) -> None:
    """Whatever happens to the text, it is a graph or a ModelError."""
    text = bytearray(model.graph.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.sampled_from(b'0123456789,[]{}"-.etx'))
    with contextlib.suppress(ModelError):
        graph = read_graph(text.decode())
        assert all(entry.node < number for number, node in enumerate(graph.nodes) for entry in node.inputs)
