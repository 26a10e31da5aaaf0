"""Under relay.check_indices, indices out of range stop the program with an error that says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.onnx.models import node_model

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr_functor import post_order_visit
from tilewright.support.errors import TilewrightError

X = relay.var("x", shape=(5, 4))
DATA = np.arange(20, dtype="float32").reshape(5, 4)


def run(expr: Any, check: bool, executor: str = "graph", **inputs: Any) -> Any:
    """The value of an expression that was compiled with or without checks."""
    variables = relay.analysis.free_vars(expr)
    module = tvm.IRModule.from_expr(relay.Function(variables, expr))
    with PassContext(opt_level=3, config={"relay.check_indices": check}):
        if executor != "graph":
            run_it = relay.create_executor(executor, module, target="llvm").evaluate()
            return run_it(*[inputs[variable.name_hint] for variable in variables]).numpy()
        library = relay.build(module, target="llvm")
    made = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    for name, value in inputs.items():
        made.set_input(name, value)
    made.run()
    return made.get_output(0).numpy()


def index(*shape: int, dtype: str = "int64") -> relay.Var:
    return relay.var("i", shape=shape, dtype=dtype)


UPDATES = relay.var("u", shape=(1, 4))
CASES = [
    ("take", relay.take(X, index(3), axis=0), [0, 7, 2], "index 7 is out of range for axis 0, .* 0 to 4"),
    ("take", relay.take(X, index(3), axis=1), [0, -1, 2], "index -1 is out of range for axis 1, .* 0 to 3"),
    (
        "take",
        relay.take(X, index(2)),
        [19, 20],
        "index 20 is out of range for the flattened data, .* 0 to 19",
    ),
    ("gather", relay.gather(X, 1, index(5, 1)), [[0], [1], [-5], [2], [3]], "index -5 .* axis 1, .* -4 to 3"),
    (
        "gather",
        relay.gather(X, -1, index(5, 1, dtype="int8")),
        [[0], [1], [4], [2], [3]],
        "index 4 .* axis 1",
    ),
    ("gather_nd", relay.gather_nd(X, index(2, 2)), [[0, 4], [1, 9]], "index 9 .* axis 1, .* -4 to 3"),
    ("adv_index", relay.adv_index([X, index(2)]), [4, 5], "index 5 .* axis 0, .* -5 to 4"),
    ("scatter", relay.scatter(X, index(1, 4), UPDATES, 0), [[0, 1, 2, 5]], "index 5 .* axis 0, .* -5 to 4"),
    ("scatter_add", relay.scatter_add(X, index(1, 4), UPDATES, 0), [[0, 1, -6, 3]], "index -6 .* axis 0"),
    (
        "scatter_nd",
        relay.scatter_nd(X, index(2, 1, 4), UPDATES, "add"),
        [[[0, 1, 2, 3]], [[0, 1, 2, -5]]],
        "index -5 .* axis 1, .* -4 to 3",
    ),
]


@pytest.mark.parametrize(("name", "expr", "indices", "text"), CASES)
def test_indices_out_of_range(name: str, expr: Any, indices: Any, text: str) -> None:
    """The message has the operator, the axis, the index and the bounds; without the option the program runs."""
    (variable,) = [one for one in relay.analysis.free_vars(expr) if one.name_hint == "i"]
    given: dict[str, Any] = {"x": DATA, "i": np.array(indices, str(variable.type_annotation.dtype))}
    if any(one.name_hint == "u" for one in relay.analysis.free_vars(expr)):
        given["u"] = np.ones((1, 4), "float32")
    with pytest.raises(IndexError, match=rf"\({name}\): {text}"):
        run(expr, True, **given)
    run(expr, False, **given)
    given["i"] = np.zeros_like(given["i"])
    np.testing.assert_array_equal(run(expr, True, **given), run(expr, False, **given))


@pytest.mark.parametrize("executor", ["vm", "debug"])
def test_every_executor_checks(executor: str) -> None:
    """The virtual machine, with a length that is not known, and the reference, if it runs the checked program."""
    x = relay.var("x", shape=(relay.Any(), 4))
    i = relay.var("i", shape=(relay.Any(),), dtype="int64")
    function = relay.Function([x, i], relay.take(x, i, axis=0))
    module = tvm.IRModule.from_expr(function)
    with PassContext(config={"relay.check_indices": True}):
        if executor == "debug":
            module = relay.transform.CheckIndices()(module)
        evaluate = relay.create_executor(executor, module, target="llvm").evaluate()
    assert evaluate(DATA, np.array([4, 0])).numpy().shape == (2, 4)
    with pytest.raises((IndexError, TilewrightError), match="index 5 is out of range for axis 0"):
        evaluate(DATA, np.array([4, 5]))


def test_nodes_of_a_model_are_named() -> None:
    """The error has the model's node, and the index as the model has it: negative ones count from the back."""
    inputs = {"x": DATA, "i": np.array([0, 4, -5], "int64")}
    model = node_model("Gather", inputs, axis=0)
    model.graph.node[0].name = "embedding"
    module, params = relay.frontend.from_onnx(model)
    with PassContext(opt_level=3, config={"relay.check_indices": True}):
        library = relay.build(module, target="llvm", params=params)
    made = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    made.set_input("x", DATA)
    made.set_input("i", inputs["i"])
    made.run()
    np.testing.assert_array_equal(made.get_output(0).numpy(), DATA[inputs["i"]])
    made.set_input("i", np.array([0, -6, 1], "int64"))
    with pytest.raises(IndexError, match=r"Gather embedding \(take\): index -6 .* axis 0, .* -5 to 4"):
        made.run()


def test_nothing_is_added_without_the_option() -> None:
    """The pass leaves programs as they are; and those that count indices around, under the option too."""
    i = index(3)
    around = relay.Function([X, i], relay.take(X, i, axis=0, mode="wrap"))
    plain = relay.Function([X, i], relay.take(X, i, axis=0))

    def checks(function: relay.Function, option: bool) -> int:
        with PassContext(config={"relay.check_indices": option}):
            made = relay.transform.CheckIndices()(tvm.IRModule.from_expr(function))
        found: list[Any] = []
        post_order_visit(made["main"], lambda one: found.append(getattr(one, "op", None)))
        return sum(isinstance(op, Op) and op.name == "check_indices" for op in found)

    assert [checks(plain, False), checks(plain, True), checks(around, True)] == [0, 1, 0]
