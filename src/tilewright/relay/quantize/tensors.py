"""Which tensors of a model are rounded to 8-bit integers, and which of them share a scale.

Layers that are quantised need integers to multiply. Where these are made from other tensors by an operator that costs
no more on integers (a sum, a product, an activation, a pool, a concatenation), its operands are integers as well, and
so on back to the layers before: what one kernel writes and another reads is bytes, in any runtime. What stays in
registers, such as the sums of a layer before its ReLU, is not rounded.

Operators that only move elements preserve the scale: what they read and write is one group, and all parts of a
concatenation are in the group of the result, so that it copies bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant, Tuple, Var, const
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.quantize.layers import Layer, uses_of
from tilewright.relay.quantize.rules import operator
from tilewright.relay.quantize.scheme import Affine, Array, ElementFunction

MOVING: Final = frozenset(
    {
        *("nn.max_pool1d", "nn.max_pool2d", "nn.batch_flatten", "nn.depth_to_space", "nn.space_to_depth"),
        *("reshape", "transpose", "squeeze", "expand_dims", "strided_slice", "concatenate"),
    }
)
"""Results are elements of the arguments, and stand for the same numbers."""
AVERAGING: Final = frozenset({"nn.avg_pool2d", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d"})
IN_REGISTERS: Final = frozenset({"nn.relu", "clip"})
"""What every runtime applies to the sums of a layer before it rounds them."""
SHARING: Final = frozenset({"add", "multiply", *AVERAGING})
"""Operators that read the integers of an image that a layer reads as well, rather than another copy in floats."""
_IMAGE_RANK: Final = 4
_ELEMENTWISE: Final = (OpPattern.ELEMWISE, OpPattern.BROADCAST)


class Tensors:
    """The tensors of a prepared model that may be rounded. ``affines`` says of each group, by its first tensor, what
    its integers stand for; it is filled in once they have been measured."""

    def __init__(self, main: Function, layers: Sequence[Layer]) -> None:
        self.order: list[Any] = list(post_order(main.body))
        self.places = {expr: place for place, expr in enumerate(self.order)}
        self.uses = uses_of(main.body)
        self.layers = list(layers)
        self.results: dict[RelayExpr, Layer] = {one.result: one for one in layers}
        self.affines: dict[RelayExpr, Affine] = {}
        self.found: dict[frozenset[str], tuple[set[RelayExpr], set[RelayExpr]]] = {}
        self.parents: dict[RelayExpr, RelayExpr] = {}
        for expr in self.rounded({one.name for one in layers})[0]:
            for operand in moved_by(expr):
                self.parents[self.group(operand)] = self.group(expr)

    def group(self, expr: RelayExpr) -> RelayExpr:
        """The tensor that names the group of a tensor."""
        while expr in self.parents and self.parents[expr] is not expr:
            expr = self.parents[expr]
        return expr

    def affine(self, expr: RelayExpr) -> Affine:
        """What the integers of a tensor stand for."""
        return self.affines[self.group(expr)]

    def sources(self) -> list[RelayExpr]:
        """The tensors that are to be measured: all but those that have the elements of others."""
        found, _ = self.rounded({one.name for one in self.layers})
        return sorted((one for one in found if not moved_by(one)), key=self.places.__getitem__)

    def function_of(self, source: RelayExpr) -> ElementFunction | None:
        """What is computed from each element of a rounded tensor, if that is all that the tensor is used for."""
        wanted, _ = self.rounded({one.name for one in self.layers})
        reached: dict[RelayExpr, None] = {source: None}
        pending = [self.places[one] for one in self.uses[source] if one is not None]
        heapq.heapify(pending)
        while pending:
            expr = self.order[heapq.heappop(pending)]
            if expr in reached or not _is_elementwise(expr) or not _is_of(expr, reached):
                continue
            reached[expr] = None
            if expr not in wanted:
                for user in self.uses[expr]:
                    if user is not None:
                        heapq.heappush(pending, self.places[user])
        ends = [one for one in reached if any(user not in reached for user in self.uses[one])]
        if len(ends) != 1 or ends[0] is source:
            return None
        calls: list[Any] = list(reached)[1:]

        def function(values: Array) -> Array:
            made: dict[RelayExpr, RelayExpr] = {source: const(values.astype(np.float32))}
            for one in calls:
                made[one] = Call(one.op, [made.get(argument, argument) for argument in one.args], one.attrs)
            return np.asarray(Interpreter().run(made[ends[0]]), np.float64)

        return function if function(np.zeros(2)).shape == (2,) else None

    def rounded(self, chosen: Collection[str]) -> tuple[set[RelayExpr], set[RelayExpr]]:
        """The tensors that are rounded where these layers are quantised, and the calls on the way to them that read
        rounded tensors."""
        key = frozenset(chosen)
        if key not in self.found:
            self.found[key] = self._rounded(key)
        return self.found[key]

    def _rounded(self, chosen: frozenset[str]) -> tuple[set[RelayExpr], set[RelayExpr]]:
        wanted: set[RelayExpr] = set()
        inside: set[RelayExpr] = set()
        pending: list[int] = []

        def want(tensors: Iterable[RelayExpr]) -> None:
            for expr in tensors:
                if expr not in wanted and _is_real(expr):
                    wanted.add(expr)
                    heapq.heappush(pending, -self.places[expr])

        want(one.data for one in self.layers if one.name in chosen)
        while pending:
            expr = self.order[-heapq.heappop(pending)]
            operands, calls = self._operands(expr, chosen)
            inside |= calls
            want(operands)
        return wanted, inside

    def _operands(
        self, expr: RelayExpr, chosen: frozenset[str]
    ) -> tuple[Iterable[RelayExpr], set[RelayExpr]]:
        """The tensors that a rounded tensor is computed from on integers, and the calls that do it; none where it is
        computed in floats, or by a layer."""
        if not isinstance(expr, Call) or expr in self.results:
            return (), set()
        if moved_by(expr):
            return moved_by(expr), {expr}
        if operator(expr) in AVERAGING:
            return expr.args[:1], {expr}
        if not _is_elementwise(expr):
            return (), set()
        region, leaves = self._region(expr)
        if not all(self._is_known(leaf) for leaf in leaves):
            return (), set()
        in_registers = len(leaves) == 1 and all(operator(one) in IN_REGISTERS for one in region)
        operands = []
        for leaf in leaves:
            layer = self.results.get(leaf)
            if layer is not None and all(user in region for user in self.uses[leaf]):
                if in_registers or layer.name not in chosen:
                    continue
            operands.append(leaf)
        return operands, region

    def _region(self, root: RelayExpr) -> tuple[set[RelayExpr], list[RelayExpr]]:
        """The elementwise calls that are needed for one tensor only, and the tensors that they read."""
        region: set[RelayExpr] = set()
        leaves: list[RelayExpr] = []
        pending, seen = [-self.places[root]], {root}
        while pending:
            expr = self.order[-heapq.heappop(pending)]
            ours = expr is root or all(user in region for user in self.uses[expr])
            if not (ours and expr not in self.results and _is_elementwise(expr)):
                leaves.append(expr)
                continue
            region.add(expr)
            for argument in expr.args:
                if argument not in seen and not isinstance(argument, Constant):
                    seen.add(argument)
                    heapq.heappush(pending, -self.places[argument])
        return region, leaves

    def _is_known(self, leaf: RelayExpr) -> bool:
        """True for what is computed on integers or is worth rounding; a mean over channels, as in norms, is neither."""
        plain = leaf in self.results or isinstance(leaf, Var) or _is_elementwise(leaf)
        return _is_real(leaf) and (plain or bool(moved_by(leaf)) or operator(leaf) in AVERAGING)


def moved_by(expr: RelayExpr) -> Sequence[RelayExpr]:
    """The tensors whose elements an operator moves; none for other operators."""
    if not isinstance(expr, Call):
        return ()
    attrs: Any = expr.attrs
    nearest = operator(expr) == "image.resize2d" and "nearest" in attrs.method
    if not nearest and operator(expr) not in MOVING:
        return ()
    first = expr.args[0]
    return first.fields if isinstance(first, Tuple) else (first,)


def _is_real(expr: RelayExpr) -> bool:
    kind = expr.checked_type
    return not isinstance(expr, Constant) and isinstance(kind, TensorType) and str(kind.dtype) == "float32"


def _is_elementwise(expr: RelayExpr) -> bool:
    """True for calls that compute each element from those in its place."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or not _is_real(expr):
        return False
    pure = not expr.op.get_attr("TOpIsStateful") and "." not in expr.op.name.removeprefix("nn.")
    return pure and expr.op.get_attr("TOpPattern") in _ELEMENTWISE


def _is_of(call: Any, known: Collection[RelayExpr]) -> bool:
    """True if everything that a call reads is known, or one number."""
    return all(
        one in known or (isinstance(one, Constant) and one.data.numpy().size == 1) for one in call.args
    )


class TensorRewriter(ExprMutator):
    """Rewrites a model so that tensors are rounded, which a subclass does in ``rounding``.

    What is visited is not rounded itself: what reads it decides which of both it gets.
    """

    def __init__(self, tensors: Tensors, chosen: Collection[str]) -> None:
        super().__init__()
        self.tensors = tensors
        self.wanted, self.inside = tensors.rounded(chosen)
        self.made: dict[RelayExpr, RelayExpr] = {}
        self.plain: dict[RelayExpr, RelayExpr] = {}

    def rounding(self, new: RelayExpr, old: RelayExpr, affine: Affine) -> RelayExpr:
        """A tensor rounded to what integers stand for; ``old`` is the one in the model."""
        raise NotImplementedError

    def rounded(self, expr: RelayExpr) -> RelayExpr:
        """A tensor as operators on integers read it."""
        if expr not in self.wanted:
            return self.visit(expr)  # type: ignore[no-any-return]
        if expr not in self.made:
            self.made[expr] = self.rounding(self.visit(expr), expr, self.tensors.affine(expr))
        return self.made[expr]

    def exact(self, expr: RelayExpr) -> RelayExpr:
        """A tensor as it is before it is rounded, also where only its elements have moved since."""
        if expr not in self.wanted or not isinstance(expr, Call) or not moved_by(expr):
            return self.visit(expr)  # type: ignore[no-any-return]
        if expr not in self.plain:
            self.plain[expr] = _with_arguments(expr, self.exact)
        return self.plain[expr]

    def visit_call(self, expr: Call) -> RelayExpr:
        """What computes on integers reads rounded tensors."""
        shared = operator(expr) in SHARING and _rank(expr) == _IMAGE_RANK
        return _with_arguments(expr, self.rounded if shared or expr in self.inside else self.visit)


def _with_arguments(expr: Call, read: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
    def argument(one: RelayExpr) -> RelayExpr:
        return Tuple([read(field) for field in one.fields]) if isinstance(one, Tuple) else read(one)

    made = tuple(argument(one) for one in expr.args)
    same = all(new is old for new, old in zip(made, expr.args, strict=True))
    return expr if same else expr.replace(args=made)


def _rank(expr: RelayExpr) -> int:
    kind: Any = expr.checked_type
    return len(getattr(kind, "shape", ()))
