"""Operations whose body is a statement: calls of external functions, or loops written with ``tir.ir_builder``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.buffer import Buffer, decl_buffer
from tilewright.ir.expr import PrimExpr
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node
from tilewright.support.span import Span, user_span
from tilewright.te.tag import current_tag
from tilewright.te.tensor import Operation, Tensor, as_shape
from tilewright.tir.stmt import Evaluate, Stmt


@node
class ExternOp(Operation):
    """A statement that reads and writes whole tensors through buffers."""

    inputs: tuple[Tensor, ...]
    input_placeholders: tuple[Buffer, ...]
    output_placeholders: tuple[Buffer, ...]
    body: Stmt

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        inputs: Sequence[Tensor],
        input_placeholders: Sequence[Buffer],
        output_placeholders: Sequence[Buffer],
        body: Stmt,
        span: Span | None = None,
    ) -> None:
        self.inputs = tuple(inputs)
        self.input_placeholders = tuple(input_placeholders)
        self.output_placeholders = tuple(output_placeholders)
        self.body = body
        shapes = [buffer.shape for buffer in self.output_placeholders]
        self._finish(name, tag, attrs, span, shapes, [buffer.dtype for buffer in self.output_placeholders])

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))

    def replace_inputs(self, mapping: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in mapping for tensor in self.inputs):
            return self
        inputs = [mapping.get(tensor, tensor) for tensor in self.inputs]
        return ExternOp(
            self.name,
            self.tag,
            self.attrs,
            inputs,
            self.input_placeholders,
            self.output_placeholders,
            self.body,
            self.span,
        )


def extern(
    shape: Any,
    inputs: Sequence[Tensor],
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Buffer | Sequence[Buffer] | None = None,
    out_buffers: Buffer | Sequence[Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors that ``fcompute(input_buffers, output_buffers)`` computes; it gives a statement or a call.

    ``shape`` is a shape or a list of shapes, one an output. Without ``dtype`` the outputs have the type of the inputs.
    """
    span = user_span()
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ExpressionError(f"extern {name} reads tensors, not {tensor!r}", span=span)
    ins = _input_buffers(name, tensors, in_buffers, span)
    outs = _output_buffers(name, shape, tensors, dtype, out_buffers, span)
    made = fcompute(ins, outs)
    body = Evaluate(made) if isinstance(made, PrimExpr) else made
    if not isinstance(body, Stmt):
        raise ExpressionError(
            f"the function of extern {name} gave {made!r}, not a statement or a call", span=span
        )
    operation = ExternOp(name, current_tag() or tag, attrs, tensors, ins, outs, body, span)
    return operation.outputs[0] if operation.num_outputs == 1 else list(operation.outputs)


def _input_buffers(name: str, tensors: list[Tensor], given: Any, span: Span | None) -> list[Buffer]:
    if given is None:
        return [decl_buffer(tensor.shape, tensor.dtype, tensor.op.name) for tensor in tensors]
    buffers = [given] if isinstance(given, Buffer) else list(given)
    if len(buffers) != len(tensors):
        raise ExpressionError(
            f"extern {name} has {len(tensors)} inputs and {len(buffers)} in_buffers", span=span
        )
    return buffers


def _output_buffers(
    name: str, shape: Any, tensors: list[Tensor], dtype: Any, given: Any, span: Span | None
) -> list[Buffer]:
    if given is not None:
        return [given] if isinstance(given, Buffer) else list(given)
    many = isinstance(shape, (list, tuple)) and bool(shape) and isinstance(shape[0], (list, tuple))
    shapes = [as_shape(one) for one in shape] if many else [as_shape(shape)]
    if dtype is None:
        kinds = {tensor.dtype for tensor in tensors}
        if len(kinds) != 1:
            raise ExpressionError(
                f"extern {name}: the type of the output cannot be told from the inputs, give dtype", span=span
            )
        dtypes = [DataType(next(iter(kinds)))] * len(shapes)
    elif isinstance(dtype, str):
        dtypes = [DataType(dtype)] * len(shapes)
    else:
        dtypes = [DataType(one) for one in dtype]
    if len(dtypes) != len(shapes):
        raise ExpressionError(f"extern {name} has {len(shapes)} outputs and {len(dtypes)} types", span=span)
    return [decl_buffer(one, kind, name) for one, kind in zip(shapes, dtypes, strict=True)]
