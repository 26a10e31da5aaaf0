"""The code generator "ccompiler": elementwise functions of float32 as C source, compiled with the machine's C compiler.

It is small on purpose: an example of what a custom code generator consists of. ``CALLS`` says which operators it
takes and how each is written; ``generate`` turns a function into source; ``CSourceModule`` holds the source
and, from when it is first needed, the machine code.
"""

from __future__ import annotations

import math
from typing import Any

from tilewright.codegen.c.source_module import C_PRELUDE, CSourceModule
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op, register_op_attr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.backend.external.symbols import external_symbol
from tilewright.relay.expr import Call, Constant, Tuple, Var
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_expr
from tilewright.relay.op.shapes import dims, known
from tilewright.relay.transform.lib.straight_line import straight_line
from tilewright.runtime.registry import register_func
from tilewright.support.errors import CodegenError

NAME = "ccompiler"

CALLS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "abs": "fabsf({0})",
    "sqrt": "sqrtf({0})",
    "exp": "expf({0})",
    "tanh": "tanhf({0})",
    "nn.relu": "({0} > 0 ? {0} : 0)",
}
"""How each operator is written in C."""

_HEAD = f"""\
{C_PRELUDE}
static float* elements(const any* argument) {{
  const tensor* given = (const tensor*)argument->v_ptr;
  return (float*)((char*)given->data + given->byte_offset);
}}
"""


def takes(expr: RelayExpr) -> bool:
    """True for a typed call whose arguments and result are float32 tensors of one constant shape, or scalars."""
    kind = expr.checked_type
    if not (isinstance(expr, Call) and isinstance(kind, TensorType) and known(*dims(kind))):
        return False
    given = [argument.checked_type for argument in expr.args]
    return kind.dtype == "float32" and all(
        one == kind or (isinstance(one, TensorType) and one == TensorType((), "float32")) for one in given
    )


for _name in CALLS:
    register_op_attr(_name, f"target.{NAME}", takes)


def _size(expr: RelayExpr) -> int:
    return math.prod(expr.checked_type.concrete_shape)


class _Writer:
    """The statements of one function: for each result a loop over its elements, which computes all that leads there."""

    def __init__(self, function: Function) -> None:
        self.lines: list[str] = []
        self.statics: list[str] = []
        self.arrays: dict[RelayExpr, str] = {}
        for position, parameter in enumerate(function.params):
            self.arrays[parameter] = self._pointer(f"in{position}", position)
        # Composite functions, made by MergeComposite, are inlined.
        body = infer_expr(straight_line(function))
        results = body.fields if isinstance(body, Tuple) else (body,)
        for position, result in enumerate(results):
            self._loop(self._pointer(f"out{position}", len(function.params) + position), result)

    def _pointer(self, name: str, position: int) -> str:
        self.lines.append(f"float* {name} = elements(&args[{position}]);")
        return name

    def _constant(self, constant: Constant) -> str:
        name = f"constant{len(self.statics)}"
        values = ", ".join(f"{float(value).hex()}f" for value in constant.data.numpy().ravel())
        self.statics.append(f"static const float {name}[] = {{{values}}};")
        return name

    def _loop(self, out: str, result: RelayExpr) -> None:
        values: dict[Any, str] = {}
        self.lines.append(f"for (int64_t i = 0; i < {_size(result)}; ++i) {{")
        for expr in post_order(result):
            if isinstance(expr, (Var, Constant)):
                if expr not in self.arrays:
                    assert isinstance(expr, Constant)
                    self.arrays[expr] = self._constant(expr)
                # A scalar has one element for all.
                values[expr] = f"{self.arrays[expr]}[{'i' if _size(expr) == _size(result) else '0'}]"
            elif isinstance(expr, Call):
                written = self._call(expr, [values[argument] for argument in expr.args])
                values[expr] = f"v{len(values)}"
                self.lines.append(f"  const float {values[expr]} = {written};")
            elif not isinstance(expr, Op):
                raise CodegenError(f"{NAME} cannot write a {type(expr).__name__} in C")
        self.lines += [f"  {out}[i] = {values[result]};", "}"]

    @staticmethod
    def _call(call: Call, operands: list[str]) -> str:
        assert isinstance(call.op, Op)
        if call.op.name not in CALLS:
            raise CodegenError(f"{NAME} cannot write {call.op.name} in C", span=call.span)
        return CALLS[call.op.name].format(*operands)


def generate(function: Function) -> str:
    """The C source of a function."""
    writer = _Writer(function)
    name = external_symbol(function)
    body = "\n".join(f"  {line}" for line in writer.lines)
    statics = "\n".join(writer.statics)
    return (
        f"{_HEAD}\n{statics}\n"
        f"int32_t __tvm_ffi_{name}(void* self, const any* args, int32_t num_args, any* result) {{\n"
        f"{body}\n  (void)self;\n  (void)num_args;\n  (void)result;\n  return 0;\n}}\n"
    )


@register_func(f"relay.ext.{NAME}")
def compile_function(function: Function) -> CSourceModule:
    """The code of a function that was taken out for this code generator."""
    return CSourceModule(generate(function), [external_symbol(function)])
