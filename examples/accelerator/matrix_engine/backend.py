"""The backend in one class: patterns and checks, and the loops of each external function, which call the engine."""

from __future__ import annotations

from typing import Any

import tilewright as tvm
from matrix_engine.checks import supported
from matrix_engine.layers import read_layer
from matrix_engine.patterns import CONV2D, DENSE
from matrix_engine.schedule import command_stream
from matrix_engine.source import driver, layer_source
from tilewright import relay, tir
from tilewright.relay.backend.byoc.uma import UMABackend
from tilewright.relay.infer import infer_expr


class MatrixEngine(UMABackend):
    """The simulated int8 matrix engine. ``host_products`` is what the processor beside it multiplies in a cycle of the
    engine: layers that it computes sooner stay there."""

    lifts_constants = (
        False  # weights are packed into the artefact, in the order in which the engine reads them
    )
    is_timed = False  # the engine here is a simulator: cycles decide, in checks.py

    def __init__(self, host_products: float = 2.0) -> None:
        super().__init__()
        self.cycles: dict[str, int] = {}
        """The cost of each layer that was compiled, by name."""
        for name, pattern in (("conv2d", CONV2D), ("dense", DENSE)):
            self._register_pattern(name, pattern, lambda root: supported(root, host_products))

    @property
    def target_name(self) -> str:
        return "matrix_engine"

    def relay_to_tir(self, mod: tvm.IRModule) -> tvm.IRModule:
        """Each external function as a sequence of calls of the engine, one a layer."""
        made = tvm.IRModule()
        for variable, function in mod.functions.items():
            made[variable.name_hint] = self._calls(variable.name_hint, function)
        return made

    def _calls(self, symbol: str, function: relay.Function) -> tir.PrimFunc:
        results = function.body.fields if isinstance(function.body, relay.Tuple) else [function.body]
        buffers: dict[Any, tir.Buffer] = {}
        parameters: dict[tir.Var, tir.Buffer] = {}
        for role, values in (("input", function.params), ("output", results)):
            for number, one in enumerate(values):
                kind = one.checked_type
                buffers[one] = tir.decl_buffer(kind.shape, kind.dtype, name=f"{role}{number}")
                parameters[tir.Var(f"{role}{number}_handle", "handle")] = buffers[one]
        sources, steps, between = [driver()], [], []
        for call in self._composite_calls(function.body):
            name = f"{symbol}_layer{len(steps)}"
            inside = relay.bind(call.op.body, dict(zip(call.op.params, call.args, strict=True)))
            layer = read_layer(infer_expr(inside))
            program = command_stream(layer)
            self.cycles[name] = program.cycles
            sources.append(layer_source(name, layer, program))
            if call not in buffers:
                kind = call.checked_type
                buffers[call] = tir.decl_buffer(kind.shape, kind.dtype, name=f"between{len(between)}")
                between.append(buffers[call])
            data = next(argument for argument in call.args if argument in buffers)
            ran = tir.call_extern("int32", name, buffers[data].data, buffers[call].data)
            steps.append((ran, f"the matrix engine stopped with a fault in {name}"))
        body: tir.Stmt = tir.Evaluate(0)
        for ran, message in reversed(steps):
            body = tir.AssertStmt(ran == 0, message, body)
        for buffer in reversed(between):
            size = 1
            for extent in buffer.shape:
                size *= int(extent)
            body = tir.Allocate(buffer.data, "int8", [size], tir.const(True, "bool"), body)
        loops = tir.PrimFunc(list(parameters), body, buffer_map=parameters)
        return loops.with_attr("global_symbol", symbol).with_attr("c_source", sources)

    @staticmethod
    def _composite_calls(body: Any) -> list[relay.Call]:
        """The layers, each after those that it needs."""
        found: list[relay.Call] = []
        relay.analysis.post_order_visit(
            body,
            lambda one: (
                found.append(one)
                if isinstance(one, relay.Call) and isinstance(one.op, relay.Function)
                else None
            ),
        )
        return found
