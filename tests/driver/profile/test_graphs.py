"""Graphs to draw."""

import tilewright as tvm
from tilewright import relay
from tilewright.driver.profile.graphs import kernel_graph, operator_graph


def test_tuples_are_passed_through():
    """An operator that reads a field of a tuple is below what makes the tuple; tuples are not nodes."""
    x = relay.var("x", shape=(4, 4))
    parts = relay.split(x, 2)
    body = relay.concatenate([relay.exp(parts[0]), parts[1]], axis=0)
    main = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], body)))["main"]
    graph = operator_graph(main, {})
    assert [node.label for node in graph.nodes] == ["x", "split", "exp", "concatenate"]
    assert set(graph.edges) == {(0, 1), (1, 2), (2, 3), (1, 3)}
    assert all(node.kernel is None for node in graph.nodes)


def test_parameters_are_left_out_and_views_are_no_kernels():
    """Only what is computed, and the inputs that a user gives, are drawn."""
    x, weight = relay.var("x", shape=(2, 8)), relay.var("weight", shape=(4, 8))
    body = relay.nn.softmax(relay.reshape(relay.nn.dense(x, weight), (4, 2)))
    params = {"weight": tvm.nd.empty((4, 8))}
    with tvm.transform.PassContext(opt_level=3):
        factory = relay.build(relay.Function([x, weight], body), "llvm", params=params)
    graph = kernel_graph(factory.get_graph_json(), frozenset(factory.params))
    assert [node.label for node in graph.nodes if node.kind == "input"] == ["x"]
    kinds = [node.kind for node in graph.nodes]
    assert kinds.count("kernel") >= 2 and "softmax" in {node.label for node in graph.nodes}
    assert all(node.kernel is None for node in graph.nodes if node.kind == "view")
    assert all(source < target for source, target in graph.edges)
