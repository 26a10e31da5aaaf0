"""Chooses the channel blocks of all convolutions of a function together; AlterOpLayout then applies the choice.

Tensors that are connected by operators which accept any block (elementwise, pooling, concatenation, shuffle) form one
*region* with one block. A convolution is an edge from the region of its input to that of its output; its cost is that
of the kernel for the blocks it runs in, plus the layout transforms between its blocks and those of the regions. All
other operators use NCHW (NHWC for a transpose), which needs a layout transform unless the block is one channel, or all
of them. The blocks with the least total cost are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from math import gcd, inf, prod
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem
from tilewright.relay.function import Function
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.relay.target.cpu.blocks import BlockedConvolution, Blocks, chosen_blocks
from tilewright.relay.target.cpu.layout import conv2d_block_costs
from tilewright.relay.target.cpu.least_cost import least_cost
from tilewright.relay.target.cpu.shapes import typical_image
from tilewright.relay.target.cpu.transposed import conv2d_transpose_in_blocks
from tilewright.relay.target.cpu.typical_shapes import (
    assuming,
    assuming_result,
    typical_shape_of,
    typical_shapes,
)
from tilewright.tir.data_layout import Layout

TRANSFORM_CYCLES: Final = 1.0
"""The measured cost of a layout transform, in cycles of one core per element."""

Shape = tuple[int, int, int, int]
HOME: Final = Layout("NCHW")
TO_NHWC, FROM_NHWC = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(eq=False)
class Region:
    """Tensors that share one block; ``plain`` elements are also needed as NCHW, ``last`` as NHWC."""

    shapes: list[Shape] = field(default_factory=list)
    rules: list[tuple[Call, list[Any]]] = field(default_factory=list)
    wishes: set[int] = field(default_factory=set)
    plain: int = 0
    last: list[tuple[int, int]] = field(default_factory=list)
    joined: Region | None = None

    def root(self) -> Region:
        """The region that this one was merged into."""
        found = self
        while found.joined is not None:
            found = found.joined
        return found

    def join(self, other: Region) -> None:
        """Merge both regions."""
        mine, theirs = self.root(), other.root()
        if mine is not theirs:
            mine.shapes += theirs.shapes
            mine.rules += theirs.rules
            mine.wishes |= theirs.wishes
            mine.plain += theirs.plain
            mine.last += theirs.last
            theirs.joined = mine

    def blocks(self) -> list[int]:
        """The blocks that all its operators support: one channel, all of them, and those that convolutions prefer."""
        common = gcd(*[shape[1] for shape in self.shapes])
        sizes = sorted({1, *(common for _ in self.last), *self.wishes})
        return [
            size for size in sizes if common % size == 0 and all(_passes(*rule, size) for rule in self.rules)
        ]

    def cost(self, block: int) -> float:
        """The cost of layout transforms at its borders."""
        moved = 0 if block == 1 else self.plain
        moved += sum(elements for elements, channels in self.last if channels != block)
        return TRANSFORM_CYCLES * moved


@dataclass(frozen=True)
class _Edge:
    """A convolution between two regions."""

    call: Call
    source: Region
    result: Region
    costs: BlockedConvolution
    inputs: int
    outputs: int

    def best(self, before: int, after: int) -> tuple[float, Blocks]:
        """The least cost between these blocks of its regions, and the blocks with that cost."""
        own = product({before, self.costs.preferred[0]}, {after, self.costs.preferred[1]})
        return min(
            (
                self.costs.cycles(*blocks)
                + TRANSFORM_CYCLES
                * (self.inputs * (blocks[0] != before) + self.outputs * (blocks[1] != after)),
                blocks,
            )
            for blocks in own
        )


@dataclass(frozen=True)
class Choice:
    """The blocks of input and output channels of each convolution that the current target has in blocks, and the
    layouts of the images around them."""

    blocks: dict[Call, Blocks] = field(default_factory=dict)
    layouts: dict[RelayExpr, Layout] = field(default_factory=dict)
    shapes: dict[RelayExpr, Shape] = field(default_factory=dict)

    @contextmanager
    def around(self, call: Call) -> Iterator[None]:
        """Activates the blocks of a call, and the shape that is assumed of its result, while it is rewritten."""
        with chosen_blocks(self.blocks.get(call)), assuming_result(self.shapes.get(call)):
            yield


def choose_blocks(function: Function) -> Choice:
    """The blocks with the least total cost for the function."""
    shapes = typical_shapes(function)
    with assuming(shapes):
        survey = _Survey()
        for expr in post_order(function.body):
            survey.visit(expr)
        if not survey.edges:
            return Choice(shapes=shapes)
        survey.read_plain(_tensors(function.body))
        return replace(survey.solved(), shapes=shapes)


class _Survey:
    """The regions and convolutions of a function, found from its arguments on."""

    def __init__(self) -> None:
        self.regions: dict[RelayExpr, Region] = {}
        self.edges: list[_Edge] = []

    def visit(self, expr: Any) -> None:
        """Add one expression; its arguments have been visited before."""
        if isinstance(expr, TupleGetItem) and expr.tuple_value in self.regions:
            self._new(expr).join(self.regions[expr.tuple_value])
        elif isinstance(expr, Call) and isinstance(expr.op, Op):
            self._call(expr, expr.op)
        elif not isinstance(expr, (Tuple, Constant)) and isinstance(expr, RelayExpr):
            self._make_plain(expr)

    def _call(self, call: Call, op: Op) -> None:
        arguments = [tensor for argument in call.args for tensor in _tensors(argument)]
        costs = _convolution(call, op)
        if costs is not None:
            source, result = self._of(call.args[0]), self._new(call)
            source.root().wishes.add(costs.preferred[0])
            result.wishes.add(costs.preferred[1])
            sizes = [prod(_shape(tensor) or (0,)) for tensor in (call.args[0], call)]
            self.edges.append(_Edge(call, source, result, costs, *sizes))
        elif op.name == "transpose" and _order(call) in (TO_NHWC, FROM_NHWC):
            self._transpose(call)
        elif self._is_open(call, arguments):
            region = self._new(call)
            region.rules.append((call, arguments))
            for tensor in arguments:
                if _shape(tensor) is not None and not isinstance(tensor, Constant):
                    region.join(self._of(tensor))
        else:
            self.read_plain(arguments)
            self._make_plain(call)

    def _is_open(self, call: Call, arguments: Sequence[RelayExpr]) -> bool:
        """True if an operator accepts blocks; tried with blocks of one channel, which always divide."""
        return _image_of(call) is not None and _passes(call, arguments, 1)

    def _transpose(self, call: Call) -> None:
        """NHWC on one side: nothing to do where all channels are one block."""
        channels_last = _order(call) == TO_NHWC
        image = call.args[0] if channels_last else call
        shape = _shape(image)
        region = self._of(image) if channels_last else self._new(call)
        if shape is not None:
            region.root().last.append((prod(shape), shape[1]))
        if channels_last:
            self._make_plain(call)

    def read_plain(self, tensors: Iterable[RelayExpr]) -> None:
        """Records reads as NCHW. The channels of a single pixel have the same order in any block."""
        for tensor in tensors:
            shape = _shape(tensor)
            if shape is not None and not isinstance(tensor, Constant) and shape[2:] != (1, 1):
                self._of(tensor).root().plain += prod(shape)

    def _make_plain(self, expr: RelayExpr) -> None:
        """Records that this is produced as NCHW."""
        shape = _image_of(expr)
        if shape is not None:
            region = self._new(expr)
            region.plain += 0 if shape[2:] == (1, 1) else prod(shape)

    def _new(self, expr: RelayExpr) -> Region:
        shape = _image_of(expr)
        self.regions[expr] = made = Region([shape] if shape is not None else [])
        return made

    def _of(self, expr: RelayExpr) -> Region:
        found = self.regions.get(expr)
        return self._new(expr) if found is None else found

    def solved(self) -> Choice:
        """The blocks with the least total cost."""
        regions = list(dict.fromkeys(one.root() for edge in self.edges for one in (edge.source, edge.result)))
        number = {region: place for place, region in enumerate(regions)}
        blocks = [region.blocks() for region in regions]
        variable_costs = [
            [region.cost(block) for block in sizes] for region, sizes in zip(regions, blocks, strict=True)
        ]
        pairs: dict[tuple[int, int], list[list[float]]] = {}
        for edge in self.edges:
            v, w = number[edge.source.root()], number[edge.result.root()]
            costs = [[edge.best(before, after)[0] for after in blocks[w]] for before in blocks[v]]
            if v == w:
                variable_costs[v] = [
                    cost + costs[place][place] for place, cost in enumerate(variable_costs[v])
                ]
            elif (v, w) in pairs or (w, v) not in pairs:
                pairs[v, w] = _sum(pairs.get((v, w)), costs)
            else:
                pairs[w, v] = _sum(pairs[w, v], [list(row) for row in zip(*costs, strict=True)])
        states = least_cost(variable_costs, pairs)
        chosen = {region: sizes[state] for region, sizes, state in zip(regions, blocks, states, strict=True)}
        layouts = {
            expr: Layout(f"NCHW{chosen[region.root()]}c") if chosen[region.root()] > 1 else HOME
            for expr, region in self.regions.items()
            if region.root() in chosen
        }
        of_calls = {
            edge.call: edge.best(chosen[edge.source.root()], chosen[edge.result.root()])[1]
            for edge in self.edges
        }
        return Choice(of_calls, layouts)


def _sum(one: list[list[float]] | None, other: list[list[float]]) -> list[list[float]]:
    if one is None:
        return other
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]


def _convolution(call: Call, op: Op) -> BlockedConvolution | None:
    """The costs of a call that is a convolution which the target has in blocks."""
    if not call.args or _shape(call.args[0]) is None or _shape(call) is None:
        return None
    types = [argument.checked_type for argument in call.args]
    if op.name == "nn.conv2d":
        with assuming_result(typical_shape_of(call)):
            return conv2d_block_costs(call.attrs, types, call.checked_type)
    return _transposed(call, types) if op.name == "nn.conv2d_transpose" else None


def _transposed(call: Call, types: Sequence[Any]) -> BlockedConvolution | None:
    """The same for a transposed convolution, which has blocks of its own and no others."""
    made = conv2d_transpose_in_blocks(call.attrs, list(call.args), types, call.checked_type)
    attrs: Any = getattr(made, "attrs", None)
    names = [getattr(attrs, name, "") for name in ("data_layout", "out_layout")]
    blocks = [Layout(name).factor_of("C") if name else -1 for name in names]
    if names != [f"NCHW{block}c" for block in blocks]:
        return None
    own = blocks[0], blocks[1]
    return BlockedConvolution(own, lambda inputs, outputs: 0.0 if (inputs, outputs) == own else inf)


def _order(call: Call) -> tuple[int, ...]:
    """The axes of a transpose."""
    attrs: Any = call.attrs
    return tuple(attrs.axes or ())


def _passes(call: Call, arguments: Sequence[RelayExpr], block: int) -> bool:
    """True if an operator accepts images in blocks and returns such."""
    rule = call.op.get_attr("FInferCorrectLayout")  # type: ignore[attr-defined]
    types = [tensor.checked_type for tensor in arguments]
    images = [_shape(tensor) is not None and not isinstance(tensor, Constant) for tensor in arguments]
    if rule is None or not any(images) or not all(isinstance(kind, TensorType) for kind in types):
        return False
    blocked = Layout(f"NCHW{block}c")
    offered: list[MaybeLayout] = [blocked if image else None for image in images]
    homes: list[MaybeLayout] = [HOME if image else None for image in images]
    chosen: Layouts = rule(call.attrs, offered, homes, types)
    taken = [layout for layout, image in zip(chosen.inputs, images, strict=True) if image]
    return all(layout == blocked for layout in taken) and all(layout == blocked for layout in chosen.outputs)


def _tensors(expr: RelayExpr) -> Iterator[RelayExpr]:
    """The tensors of an argument: the fields of a tuple that stands there."""
    if isinstance(expr, Tuple):
        for part in expr.fields:
            yield from _tensors(part)
    else:
        yield expr


def _shape(expr: RelayExpr) -> Shape | None:
    """The shape of an image, with typical sizes where the height and width are open."""
    return typical_shape_of(expr)


def _image_of(expr: RelayExpr) -> Shape | None:
    """The shape of an image, or of the first of a tuple of images."""
    kind = getattr(expr, "_checked_type_", None)
    first = kind.fields[0] if kind is not None and getattr(kind, "fields", None) else None
    if isinstance(first, TensorType) and len(first.shape) == 4:
        return typical_image(first.shape)
    return _shape(expr)
