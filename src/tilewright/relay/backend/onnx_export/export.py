"""``to_onnx``: a graph-level module as an ONNX model, so that other tools show what the compiler made of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.backend.onnx_export import elementwise, network, quantization, recurrent, transforms
from tilewright.relay.backend.onnx_export.builder import WRITERS, GraphWriter
from tilewright.relay.backend.onnx_export.tidy import tidy
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.output_names import output_names
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError, OpNotImplemented
from tilewright.support.recursion import recursion_room

assert (
    elementwise and network and quantization and recurrent and transforms
)  # importing them registers the writers


def to_onnx(
    relay_ir: IRModule | Function,
    params: Mapping[str, Any] | None,
    name: str,
    opset_version: int = 11,
    path: str | None = None,
    doc_string: str | None = None,
) -> Any:
    """A module (its ``main``) or function as an ONNX model, written to ``path`` where one is given.

    ``params`` become initializers. Functions that are called, fused ones among them, are written out in place. A module
    with operators that cannot be written raises one error that names them all.
    """
    module = relay_ir if isinstance(relay_ir, IRModule) else IRModule.from_expr(relay_ir)
    module = infer_module(module)
    main = module["main"]
    _require_writable(module, main)
    graph = GraphWriter(opset_version)
    with recursion_room():
        model = _Export(graph, module, dict(params or {})).model(main, name, doc_string or "")
    graph.onnx.checker.check_model(model)
    if path:
        _write(Path(path), model.SerializeToString())
    return model


def _write(path: Path, content: bytes) -> None:
    """Beside its final name first: a file that is half written has another name."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)


class _Operators(ExprVisitor):
    """How often each operator is called, in functions that are called as well."""

    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self.module = module
        self.counts: Counter[str] = Counter()

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, Op):
            self.counts[call.op.name] += 1
        super().visit_call(call)

    def visit_global_var(self, variable: GlobalVar) -> None:
        if variable.name_hint in self.module:
            self.visit(self.module[variable.name_hint])


def _require_writable(module: IRModule, main: Function) -> None:
    found = _Operators(module)
    found.visit(main)
    missing = [f"{name} ({count})" for name, count in sorted(found.counts.items()) if name not in WRITERS]
    if missing:
        raise OpNotImplemented(f"these operators cannot be written as ONNX: {', '.join(missing)}")


class _Export:
    """Writes one function; values are names, or lists of names for tuples."""

    def __init__(self, graph: GraphWriter, module: IRModule, params: dict[str, Any]) -> None:
        self.graph = graph
        self.module = module
        self.params = params

    def model(self, main: Function, name: str, doc_string: str) -> Any:
        """The model of a function."""
        graph, helper = self.graph, self.graph.onnx.helper
        inputs: list[Any] = []
        values: dict[RelayExpr, Any] = {}
        for parameter in main.params:
            stored = self.params.get(parameter.name_hint)
            chosen = graph.name(parameter.name_hint)
            values[parameter] = chosen
            if stored is None:
                inputs.append(graph.type_info(chosen, _tensor_type(parameter)))
            else:
                array = stored.numpy() if isinstance(stored, NDArray) else stored
                graph.initializers.append(graph.onnx.numpy_helper.from_array(array, chosen))
        made = self.function(main.body, values)
        kind = main.body.checked_type
        names = made if isinstance(made, list) else [made]
        kinds: list[Any] = list(kind.fields) if isinstance(kind, TupleType) else [kind]
        outputs = []
        given = output_names(main, len(names))
        for number, (each, type_of_each) in enumerate(zip(names, kinds, strict=True)):
            unnamed = "output" if len(names) == 1 else f"output_{number}"
            chosen = graph.name(given[number] if given else unnamed)
            graph.nodes.append(helper.make_node("Identity", [each], [chosen], name=graph.name("output_node")))
            outputs.append(graph.type_info(chosen, type_of_each))
        tidy(graph, [one.name for one in outputs])
        proto = helper.make_graph(graph.nodes, name, inputs, outputs, graph.initializers, doc_string)
        return helper.make_model(
            proto,
            producer_name="tilewright",
            opset_imports=[helper.make_opsetid("", graph.opset)],
            ir_version=7 if graph.opset < 15 else 8 if graph.opset < 19 else 10,
        )

    def function(self, body: RelayExpr, values: dict[RelayExpr, Any]) -> Any:
        """The value of an expression, given those of its variables; every expression is written once."""
        pending: list[tuple[RelayExpr, bool]] = [(body, False)]
        while pending:
            expr, ready = pending.pop()
            if expr in values:
                continue
            if not ready:
                pending.append((expr, True))
                pending += [(each, False) for each in reversed(_operands(expr))]
                continue
            values[expr] = self.value(expr, values)
        return values[body]

    def value(self, expr: RelayExpr, values: dict[RelayExpr, Any]) -> Any:
        """The value of an expression whose operands have theirs."""
        if isinstance(expr, Constant):
            return self.graph.constant(expr.data.numpy())
        if isinstance(expr, Tuple):
            return [values[each] for each in expr.fields]
        if isinstance(expr, TupleGetItem):
            return values[expr.tuple_value][expr.index]
        if isinstance(expr, Let):
            values[expr.var] = values[expr.value]
            return self.function(expr.body, values)
        if isinstance(expr, Call):
            arguments = [values[each] for each in expr.args]
            if isinstance(expr.op, Op):
                return WRITERS[expr.op.name](self.graph, expr, *arguments)
            callee = self.module[expr.op.name_hint] if isinstance(expr.op, GlobalVar) else expr.op
            if isinstance(callee, Function):
                return self.function(callee.body, dict(zip(callee.params, arguments, strict=True)))
        raise ModelError(f"a {type(expr).__name__} cannot be written as ONNX: only graphs of operators can")


def _operands(expr: RelayExpr) -> list[RelayExpr]:
    """What has to be written before an expression is."""
    if isinstance(expr, Call):
        return list(expr.args)
    if isinstance(expr, Tuple):
        return list(expr.fields)
    if isinstance(expr, TupleGetItem):
        return [expr.tuple_value]
    return [expr.value] if isinstance(expr, Let) else []


def _tensor_type(parameter: Var) -> TensorType:
    kind = parameter.checked_type
    if not isinstance(kind, TensorType):
        raise ModelError(f"the parameter {parameter.name_hint} is {kind}: only tensors can be inputs")
    return kind
