"""Scans: tensors whose first dimension is time, each step computed from the steps before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.expr import IterVar, Range, Var
from tilewright.support.errors import ExpressionError
from tilewright.support.node import node
from tilewright.support.span import Span, user_span
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tag import current_tag
from tilewright.te.tensor import Operation, Tensor


@node
class ScanOp(Operation):
    """``init`` gives the first steps, ``update`` one step from those before, which it reads through
    ``state_placeholder``."""

    scan_axis: IterVar
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state_placeholder: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    spatial_axis: tuple[IterVar, ...]

    def __init__(
        self,
        name: str,
        tag: str,
        attrs: Mapping[str, Any] | None,
        axis: IterVar,
        init: Sequence[Tensor],
        update: Sequence[Tensor],
        state_placeholder: Sequence[Tensor],
        inputs: Sequence[Tensor],
        span: Span | None = None,
        spatial_axis: tuple[IterVar, ...] | None = None,
    ) -> None:
        self.scan_axis = axis
        self.init = tuple(init)
        self.update = tuple(update)
        self.state_placeholder = tuple(state_placeholder)
        self.inputs = tuple(inputs)
        self.spatial_axis = spatial_axis or tuple(
            IterVar(Range(0, extent), Var(f"{name}.out{output}.i{dimension}", extent.dtype), IterVar.Opaque)
            for output, tensor in enumerate(self.update)
            for dimension, extent in enumerate(tensor.shape[1:], 1)
        )
        shapes = [tensor.shape for tensor in self.state_placeholder]
        self._finish(name, tag, attrs, span, shapes, [tensor.dtype for tensor in self.init])

    @property
    def axis(self) -> tuple[IterVar, ...]:
        return (self.scan_axis, *self.spatial_axis)

    @property
    def spatial_axis_(self) -> tuple[IterVar, ...]:
        """Another name of ``spatial_axis``, kept for scripts that use it."""
        return self.spatial_axis

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys((*self.init, *self.update)))

    def replace_inputs(self, mapping: Mapping[Tensor, Tensor]) -> Operation:
        if not any(tensor in mapping for tensor in (*self.init, *self.update)):
            return self
        # The axes are the stage's roots: they must outlive the replacement of what is read.
        return ScanOp(
            self.name,
            self.tag,
            self.attrs,
            self.scan_axis,
            [mapping.get(tensor, tensor) for tensor in self.init],
            [mapping.get(tensor, tensor) for tensor in self.update],
            self.state_placeholder,
            self.inputs,
            self.span,
            self.spatial_axis,
        )

    def prepare_schedule(self, schedule: Any) -> None:
        """The update, and all between the state and it, is computed inside the scan's loop."""
        schedule.place_scan_update(self)


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors over time: the first ``init.shape[0]`` steps are given, the others follow from the state before
    them."""
    span = user_span()
    starts, steps, states = _list(init), _list(update), _list(state_placeholder)
    if not len(starts) == len(steps) == len(states):
        raise ExpressionError(
            f"scan {name} has {len(starts)} init, {len(steps)} update and {len(states)} state tensors",
            span=span,
        )
    for start, step, state in zip(starts, steps, states, strict=True):
        if not start.ndim == step.ndim == state.ndim or start.ndim == 0:
            raise ExpressionError(
                f"scan {name}: init, update and state must have as many dimensions, one or more", span=span
            )
        if not start.dtype == step.dtype == state.dtype:
            raise ExpressionError(
                f"scan {name}: init, update and state have types {start.dtype}, {step.dtype}, {state.dtype}",
                span=span,
            )
        if not isinstance(state.op, PlaceholderOp):
            raise ExpressionError(
                f"scan {name}: the state must be a placeholder, {state.name} is computed", span=span
            )
    axis = IterVar(
        Range(starts[0].shape[0], steps[0].shape[0]),
        Var(f"{name}.idx", steps[0].shape[0].dtype),
        IterVar.Ordered,
    )
    scope_tag = current_tag()
    operation = ScanOp(
        name,
        scope_tag or tag,
        attrs,
        axis,
        starts,
        steps,
        states,
        _list([] if inputs is None else inputs),
        span,
    )
    return operation.outputs[0] if operation.num_outputs == 1 else operation.outputs


def _list(given: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [given] if isinstance(given, Tensor) else list(given)
