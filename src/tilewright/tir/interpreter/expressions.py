"""Expressions as closures over a frame.

``ExpressionCompiler.visit(expression)`` returns a function of a frame, which is a list with a slot for each variable of
the program. Compiling once and running many times makes the interpreter fast enough to be an oracle: a node costs one
Python call. The calls go from Python frame to Python frame, so that depth costs only heap.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import (
    Add,
    And,
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
    is_const,
)
from tilewright.ir.functor import Functor
from tilewright.ir.op import Op
from tilewright.support.dtype import DataType
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.memory import Cells, Pointer, View, compact_strides
from tilewright.tir.interpreter.rings import RingText, ring_maker
from tilewright.tir.interpreter.sharing import computed_once, forgetting, shared_parts
from tilewright.tir.interpreter.values import (
    cast_between,
    constant,
    into_type,
    lane_type,
    scalar_from_lane,
)

Frame = list[Any]
Run = Callable[[Frame], Any]
CallBuilder = Callable[["ExpressionCompiler", Call], Run]


def _divide_integers(a: int, b: int) -> int:
    """The quotient rounded towards zero. A divisor of zero counts as one, as in compiled code, which never traps."""
    quotient = abs(a) // (abs(b) or 1)
    return quotient if (a < 0) == (b < 0) else -quotient


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
_LANES: dict[type, Callable[[Any, Any], Any]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Min: lambda a, b: np.where((a <= b) | (a != a), a, b),
    Max: lambda a, b: np.where((a >= b) | (a != a), a, b),
}
_FLOATS: dict[type, Callable[[Any, Any], Any]] = {
    **_LANES,
    Min: lambda a, b: a if a <= b or a != a else b,
    Max: lambda a, b: a if a >= b or a != a else b,
    Div: operator.truediv,
    Mod: np.fmod,
    FloorDiv: lambda a, b: np.floor(a / b),
    FloorMod: np.mod,
}
_INTEGERS: dict[type, Callable[[Any, Any], Any]] = {
    Min: min,
    Max: max,
    Div: _divide_integers,
    Mod: lambda a, b: a - _divide_integers(a, b) * (b or 1),
    FloorDiv: lambda a, b: a // (b or 1),
    FloorMod: lambda a, b: a % (b or 1),
}


class ExpressionCompiler(Functor):
    """Makes closures of expressions; keeps where each variable and each buffer lives in the frame."""

    calls: dict[str, CallBuilder] = {}
    """How each intrinsic is compiled, by name without ``tir.``; ``intrinsics.py`` fills it."""

    def __init__(self, lookup_function: Callable[[str], Callable[..., Any]]) -> None:
        self.slots: dict[Var, int] = {}
        self.view_slots: dict[Buffer, int] = {}
        self.shared: dict[int, Run] = {}
        self.frame_size = 1
        self.lookup_function = lookup_function

    def visit(self, node: Any) -> Any:
        """The closure of a node."""
        if self.shared and id(node) in self.shared:
            return self.shared[id(node)]
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        return handler(self, node)

    def whole(self, expr: PrimExpr) -> Run:
        """The closure of an expression that a statement evaluates, which may be a large graph."""
        slots: list[int] = []
        for part in shared_parts(expr):
            slots.append(self.new_slot())
            self.shared[id(part)] = computed_once(slots[-1], self.visit(part))
        run: Run = self.visit(expr)
        self.shared.clear()
        return forgetting(slots, run) if slots else run

    def new_slot(self) -> int:
        """A place in the frame that nothing else uses."""
        self.frame_size += 1
        return self.frame_size - 1

    def define(self, variable: Var) -> int:
        """The place of a variable that a statement defines."""
        found = self.slots.get(variable)
        if found is None:
            found = self.slots[variable] = self.new_slot()
        return found

    def define_view(self, buffer: Buffer) -> int:
        """The place of the view of a buffer that gets memory here."""
        found = self.view_slots.get(buffer)
        if found is None:
            found = self.view_slots[buffer] = self.new_slot()
        return found

    def visit_default(self, node: Any) -> Run:
        raise TilewrightError(f"the interpreter cannot run {type(node).__name__}: {node}")

    def visit_producer_load(self, node: ProducerLoad) -> Run:
        raise TilewrightError(
            f"tensor {node.producer.name_hint} has no memory yet: lower the program before running it"
        )

    # Leaves

    def visit_var(self, node: Var) -> Run:
        slot = self.slots.get(node)
        if slot is None:
            raise TilewrightError(f"variable {node.name} is used where it is not defined")
        return lambda frame: frame[slot]

    def visit_int_imm(self, node: IntImm) -> Run:
        value = constant(node.dtype, node.value)
        return lambda frame: value

    def visit_float_imm(self, node: FloatImm) -> Run:
        value = constant(node.dtype, node.value)
        return lambda frame: value

    def visit_string_imm(self, node: StringImm) -> Run:
        value = node.value
        return lambda frame: value

    # Arithmetic

    def visit_binary_op_expr(self, node: BinaryOpExpr) -> Run:
        dtype = node.dtype
        if dtype.is_integral and dtype.lanes == 1:
            return self._integer(node)
        a, b = self.visit(node.a), self.visit(node.b)
        if dtype.is_integral:
            return self._integer_lanes(node, a, b)
        compute = (_LANES if dtype.lanes > 1 and type(node) in _LANES else _FLOATS)[type(node)]
        finish = into_type(dtype)
        if finish is not None:
            return lambda frame: finish(compute(a(frame), b(frame)))
        return lambda frame: compute(a(frame), b(frame))

    visit_add = visit_sub = visit_mul = visit_div = visit_mod = visit_binary_op_expr
    visit_floor_div = visit_floor_mod = visit_min = visit_max = visit_binary_op_expr

    def _integer(self, node: BinaryOpExpr) -> Run:
        """Exact arithmetic on Python integers, wrapped into the type."""
        wrap = into_type(node.dtype)
        assert wrap is not None
        if isinstance(node, (Add, Sub, Mul)) and not node.dtype.is_bool:
            ring = RingText(self.slots, self.shared)
            text = ring.text(node)
            low = -(1 << (node.dtype.bits - 1)) if node.dtype.is_int else 0
            make = ring_maker(text, len(ring.leaves), low, low + (1 << node.dtype.bits) - 1)
            return make(wrap, *[self.visit(leaf) for leaf in ring.leaves])  # type: ignore[no-any-return]
        a, b = self.visit(node.a), self.visit(node.b)
        compute = {**_LANES, **_INTEGERS}[type(node)]

        return lambda frame: wrap(compute(a(frame), b(frame)))

    def _integer_lanes(self, node: BinaryOpExpr, a: Run, b: Run) -> Run:
        """Vectors of integers; NumPy wraps sums and products, quotients go lane by lane."""
        finish = into_type(node.dtype)
        if type(node) in _LANES:
            compute = _LANES[type(node)]
            if finish is None:
                return lambda frame: compute(a(frame), b(frame))
            return lambda frame: finish(compute(a(frame), b(frame)))
        divide, kind = _INTEGERS[type(node)], lane_type(node.dtype)
        wrap = into_type(node.dtype.element)
        assert wrap is not None

        def lanes(frame: Frame) -> Any:
            pairs = zip(a(frame).tolist(), b(frame).tolist(), strict=True)
            return np.array([wrap(divide(left, right)) for left, right in pairs], dtype=kind)

        return lanes

    def visit_cmp_expr(self, node: CmpExpr) -> Run:
        a, b = self.visit(node.a), self.visit(node.b)
        compare = _COMPARISONS[type(node).__name__]
        return lambda frame: compare(a(frame), b(frame))

    visit_eq = visit_ne = visit_lt = visit_le = visit_gt = visit_ge = visit_cmp_expr

    def visit_and(self, node: And) -> Run:
        a, b = self.visit(node.a), self.visit(node.b)
        return lambda frame: a(frame) & b(frame)

    def visit_or(self, node: Or) -> Run:
        a, b = self.visit(node.a), self.visit(node.b)
        return lambda frame: a(frame) | b(frame)

    def visit_not(self, node: Not) -> Run:
        a = self.visit(node.a)
        if node.dtype.lanes > 1:
            return lambda frame: ~a(frame)
        return lambda frame: not a(frame)

    def visit_select(self, node: Select) -> Run:
        condition, yes, no = (
            self.visit(node.condition),
            self.visit(node.true_value),
            self.visit(node.false_value),
        )
        if node.condition.dtype.lanes > 1:
            return lambda frame: np.where(condition(frame), yes(frame), no(frame))

        def choose(frame: Frame) -> Any:
            first, second = yes(frame), no(frame)
            return first if condition(frame) else second

        return choose

    def visit_cast(self, node: Cast) -> Run:
        value, convert = self.visit(node.value), cast_between(node.value.dtype, node.dtype)
        return lambda frame: convert(value(frame))

    def visit_let(self, node: Let) -> Run:
        value = self.visit(node.value)
        slot = self.define(node.var)
        body = self.visit(node.body)

        def bind(frame: Frame) -> Any:
            frame[slot] = value(frame)
            return body(frame)

        return bind

    # Vectors

    def visit_ramp(self, node: Ramp) -> Run:
        base, stride, kind = self.visit(node.base), self.visit(node.stride), lane_type(node.dtype)
        steps = np.arange(node.lanes, dtype=np.int64)
        return lambda frame: (base(frame) + stride(frame) * steps).astype(kind)

    def visit_broadcast(self, node: Broadcast) -> Run:
        value, kind, lanes = self.visit(node.value), lane_type(node.dtype), node.lanes
        return lambda frame: np.full(lanes, value(frame), dtype=kind)

    def visit_shuffle(self, node: Shuffle) -> Run:
        vectors = [self.visit(vector) for vector in node.vectors]
        indices = [self.visit(index) for index in node.indices]
        element = node.dtype.element

        def shuffle(frame: Frame) -> Any:
            lanes = np.concatenate([np.atleast_1d(vector(frame)) for vector in vectors])
            picked = lanes[[index(frame) for index in indices]]
            return picked if len(indices) > 1 else scalar_from_lane(element, picked[0])

        return shuffle

    # Memory

    def visit_load(self, node: Load) -> Run:
        pointer, index, dtype = self.visit(node.buffer_var), self.visit(node.index), node.dtype.element
        name = node.buffer_var.name
        if node.dtype.lanes == 1:
            mask = None if is_const(node.predicate, 1) else self.visit(node.predicate)
            slot = self.slots[node.buffer_var]

            def load(frame: Frame) -> Any:
                # What ``memory_cells(...).load(...)`` does, written out: this is where programs spend their time.
                target = frame[slot]
                cells = target.cells[dtype] if type(target) is Pointer else memory_cells(target, dtype, name)
                if mask is not None and not mask(frame):
                    return constant(dtype, 0)
                position = index(frame) + cells.start
                if 0 <= position < cells.length:
                    return cells.items[position]
                raise cells.outside(position)

            return load
        positions = self.lane_positions(index, node.dtype.lanes, node.index.dtype.lanes)
        lane_mask = self.lane_mask(node.predicate, node.dtype.lanes)
        kind, lanes = lane_type(dtype), node.dtype.lanes

        def load_lanes(frame: Frame) -> Any:
            cells = memory_cells(pointer(frame), dtype, name)
            if lane_mask is None:
                return cells.load_lanes(positions(frame))
            chosen = lane_mask(frame)
            result = np.zeros(lanes, kind)
            result[chosen] = cells.load_lanes(positions(frame)[chosen])
            return result

        return load_lanes

    def lane_positions(self, index: Run, lanes: int, index_lanes: int) -> Run:
        """The element each lane is at. Where there are fewer indices than lanes, an index counts whole vectors."""
        width = lanes // index_lanes
        if width == 1:
            return index
        within = np.arange(width, dtype=np.int64)

        def spread(frame: Frame) -> Any:
            starts = np.atleast_1d(np.asarray(index(frame), dtype=np.int64)) * width
            return (starts[:, None] + within).reshape(-1)

        return spread

    def lane_mask(self, predicate: PrimExpr, lanes: int) -> Run | None:
        """Which lanes take part; None for all."""
        if is_const(predicate, 1):
            return None
        mask: Run = self.visit(predicate)
        if predicate.dtype.lanes == lanes:
            return mask
        width = lanes // predicate.dtype.lanes
        return lambda frame: np.repeat(np.atleast_1d(mask(frame)), width)

    def visit_buffer_load(self, node: BufferLoad) -> Run:
        view_of = self.view(node.buffer)
        if node.dtype.lanes > 1:
            cells_and_positions = self.buffer_lanes(node.buffer, node.indices)

            def load_lanes(frame: Frame) -> Any:
                cells, positions = cells_and_positions(frame)
                return cells.load_lanes(positions)

            return load_lanes
        locate = self.locate(node.indices)

        def load(frame: Frame) -> Any:
            view = view_of(frame)
            cells = view.cells
            position = locate(frame, view) + cells.start
            if 0 <= position < cells.length:
                return cells.items[position]
            raise cells.outside(position)

        return load

    def locate(self, indices: Sequence[PrimExpr]) -> Callable[[Frame, View], int]:
        """The element of a view at scalar indices, checked against its box. One and two dimensions are written out."""
        runs = [self.visit(index) for index in indices]

        def general(frame: Frame, view: View) -> int:
            position = view.offset
            for run, (low, high, stride) in zip(runs, view.dimensions, strict=True):
                index = run(frame)
                if not low <= index < high:
                    raise view.outside([run(frame) for run in runs])
                position += index * stride
            return position

        if len(runs) == 1:
            (first,) = runs

            def one(frame: Frame, view: View) -> int:
                ((low, high, stride),) = view.dimensions
                index = first(frame)
                if not low <= index < high:
                    raise view.outside([index])
                return view.offset + index * stride  # type: ignore[no-any-return]

            return one
        if len(runs) == 2:
            first, second = runs

            def two(frame: Frame, view: View) -> int:
                (low, high, stride), (second_low, second_high, second_stride) = view.dimensions
                index, second_index = first(frame), second(frame)
                if not (low <= index < high and second_low <= second_index < second_high):
                    raise view.outside([index, second_index])
                return view.offset + index * stride + second_index * second_stride  # type: ignore[no-any-return]

            return two
        return general

    def buffer_lanes(
        self, buffer: Buffer, indices: Sequence[PrimExpr]
    ) -> Callable[[Frame], tuple[Cells, Any]]:
        """The memory of a buffer and the element of each lane, for indices of which some are vectors."""
        view_of = self.view(buffer)
        runs = [self.visit(index) for index in indices]
        within = np.arange(buffer.dtype.lanes, dtype=np.int64)

        def locate(frame: Frame) -> tuple[Cells, Any]:
            view = view_of(frame)
            positions = np.full(1, view.offset, dtype=np.int64)
            for run, (low, high, stride) in zip(runs, view.dimensions, strict=True):
                index = np.atleast_1d(np.asarray(run(frame), dtype=np.int64))
                if index.min() < low or index.max() >= high:
                    raise view.outside([np.asarray(run(frame)).tolist() for run in runs])
                positions = positions + index * stride
            return view.cells, (positions[:, None] * len(within) + within).reshape(-1)

        return locate

    def view(self, buffer: Buffer) -> Callable[[Frame], View]:
        """The view of a buffer: the one it was given with its memory, or one through its data pointer."""
        slot = self.view_slots.get(buffer)
        if slot is not None:
            return lambda frame: frame[slot]
        return self.view_through_pointer(buffer)

    def view_through_pointer(self, buffer: Buffer) -> Callable[[Frame], View]:
        """A view made anew at each access, for the shape and offset may depend on loop variables."""
        pointer = self.visit(buffer.data)
        offset = self.visit(buffer.elem_offset)
        shape = [self.visit(extent) for extent in buffer.shape]
        strides = [self.visit(stride) for stride in buffer.strides]
        checked = buffer.buffer_type != "auto_broadcast"

        def make(frame: Frame) -> View:
            target = pointer(frame)
            if not isinstance(target, Pointer):
                raise TilewrightError(f"buffer {buffer.name} has no memory: its pointer is {target!r}")
            extents = [extent(frame) for extent in shape]
            steps = [stride(frame) for stride in strides] if strides else compact_strides(extents)
            return View(
                buffer.name,
                target,
                buffer.dtype,
                offset(frame),
                [0] * len(extents),
                extents,
                steps,
                checked=checked,
            )

        return make

    # Calls and reductions

    def visit_call(self, node: Call) -> Run:
        if not isinstance(node.op, Op):
            return self._call_function(node)
        build = self.calls.get(node.op.name.removeprefix("tir."))
        if build is None:
            raise TilewrightError(f"the interpreter has no intrinsic {node.op.name}: {node}", span=node.span)
        return build(self, node)

    def _call_function(self, node: Call) -> Run:
        """A call of another function of the module."""
        name, args = node.op.name_hint, [self.visit(argument) for argument in node.args]
        return lambda frame: self.lookup_function(name)(*[argument(frame) for argument in args])

    def visit_reduce(self, node: Reduce) -> Run:
        axes = []
        for axis in node.axis:
            if axis.dom is None:
                raise TilewrightError(f"reduction axis {axis.var.name} has no range")
            axes.append((self.visit(axis.dom.min), self.visit(axis.dom.extent), self.define(axis.var)))
        combiner = node.combiner
        left = [self.define(variable) for variable in combiner.lhs]
        right = [self.define(variable) for variable in combiner.rhs]
        combine = [self.visit(value) for value in combiner.result]
        first = [self.visit(value) for value in node.init or combiner.identity_element]
        source = [self.visit(value) for value in node.source]
        condition, position = self.visit(node.condition), node.value_index

        def reduce(frame: Frame) -> Any:
            totals = [value(frame) for value in first]
            ranges = []
            for low, extent, _ in axes:
                start = low(frame)
                ranges.append(range(start, start + extent(frame)))
            for point in itertools.product(*ranges):
                for (_, _, slot), value in zip(axes, point, strict=True):
                    frame[slot] = value
                if condition(frame):
                    values = [value(frame) for value in source]
                    for slot, value in zip(left + right, totals + values, strict=True):
                        frame[slot] = value
                    totals = [value(frame) for value in combine]
            return totals[position]

        return reduce


def memory_cells(pointer: Any, dtype: DataType, name: str) -> Cells:
    """The elements behind a pointer, which must be one."""
    if isinstance(pointer, Pointer):
        return pointer.cells[dtype]
    raise TilewrightError(f"{name} does not point to memory: it is {pointer!r}")
