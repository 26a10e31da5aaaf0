"""FuseAttention: fuses two products with a softmax between them into one operator, which never materializes all scores.

It matches ``batch_matmul(softmax(scale * batch_matmul(q, k.T) + mask), v)``, where scores may be masked by additions
and by ``where`` with minus infinity, scales may be applied to the scores or to the operands, and operands may be split
from one projection. The transposes that move heads before tokens disappear: operands are read in the layout of the
projections. On CPUs heads of keys and values that several heads of queries share are not repeated, keys behind a
constant causal mask are skipped, and few queries are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, TupleGetItem, const
from tilewright.relay.function import Function
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    constant_expressions,
    is_call,
    made_type,
    rewritten,
    scalar_value,
)
from tilewright.schedule.cpu.few_queries import reads_few_queries
from tilewright.schedule.gpu.tensor_core.attention import attention_refused
from tilewright.target.target import Target
from tilewright.topi.nn.attention import AttentionShape

FEWEST_QUERIES: Final = 8
"""Queries from which the operator is worth it: with one or two, vectors of queries are mostly empty."""

HIDDEN: Final = -1e30
"""A number that hides a score that it is added to."""

FLOATS: Final = ("float16", "bfloat16", "float32", "float64")

Extents = tuple[int, ...]


def _extents(expr: RelayExpr) -> Extents | None:
    """The shape of a tensor, where it is constant and has elements."""
    kind = made_type(expr)
    if not isinstance(kind, TensorType):
        return None
    found = tuple(extent for extent in dims(kind) if isinstance(extent, int) and extent > 0)
    return found if len(found) == len(kind.shape) else None


@dataclass(frozen=True)
class _Operand:
    """A tensor of four dimensions in an order of N, T, H and C, at which head its heads begin, a factor, and for how
    many heads in a row each of its heads stands."""

    source: RelayExpr
    layout: str
    first_head: int
    factor: float
    shared: int = 1


@dataclass
class _Scores:
    """The operators found between the softmax and the first product."""

    product: Call
    factor: float
    masks: list[RelayExpr] = field(default_factory=list)


def _unscaled(expr: RelayExpr) -> tuple[RelayExpr, float]:
    """The expression without factors that are one number, and their product."""
    factor = 1.0
    while isinstance(expr, Call) and is_call(expr, "multiply", "divide"):
        first, second = (scalar_value(argument) for argument in expr.args)
        if second is not None and _extents(expr.args[0]) == _extents(expr):
            factor = factor * second if is_call(expr, "multiply") else factor / second
            expr = expr.args[0]
        elif first is not None and is_call(expr, "multiply") and _extents(expr.args[1]) == _extents(expr):
            factor, expr = factor * first, expr.args[1]
        else:
            break
    return expr, factor


class _Fuse(OperatorRewriter):
    def __init__(self, body: RelayExpr, target: Target | None) -> None:
        super().__init__({"nn.batch_matmul": self._attention})
        self.target = target
        self.readers = _readers(body)
        self.on_cpu = target is None or "cpu" in target.keys
        self.diagonals: dict[tuple[RelayExpr, ...], int | None] = {}
        self.masks: dict[tuple[RelayExpr, Extents], RelayExpr] = {}
        self.cast_masks: dict[RelayExpr, RelayExpr] = {}

    def _attention(self, old: Call, new: Call) -> RelayExpr | None:
        """Replaces the second product by attention."""
        attrs: Any = new.attrs
        weights = self._unshaped(old.args[0])
        if attrs.transpose_a or not is_call(weights, "nn.softmax") or not _gives_own_type(old):
            return None
        softmax: Any = weights
        rank = len(_extents(softmax) or ())
        if rank not in (3, 4) or softmax.attrs.axis not in (-1, rank - 1) or not self._is_read_once(softmax):
            return None
        scores = self._scores(softmax.args[0])
        if scores is None:
            return None
        return self._made(old, softmax, scores)

    def _made(self, old: Call, softmax: Any, scores: _Scores) -> RelayExpr | None:
        first: Any = scores.product.attrs
        second: Any = old.attrs
        shape, keys = _extents(scores.product), _extents(old.args[1])
        kind = made_type(old)
        if shape is None or keys is None or not isinstance(kind, TensorType) or str(kind.dtype) not in FLOATS:
            return None
        if first.transpose_a or shape[0] != keys[0]:
            return None
        if any(_extents(argument) is None for argument in scores.product.args):
            return None
        orders = ("TC", "TC" if first.transpose_b else "CT", "CT" if second.transpose_b else "TC")
        parts = (*scores.product.args, old.args[1])
        if any((_extents(part) or (0,))[0] != shape[0] for part in parts):
            return None
        times, apart = _heads_apart(parts[0], shape, _extents(softmax) or ()) if self.on_cpu else (1, shape)
        if times > 1:
            shape = apart
            size = (_extents(parts[0]) or ())[2]
            parts = (call("reshape", _reshaped(parts[0]), newshape=(*shape[:2], size)), *parts[1:])
        operands = _operands(parts, orders, self.on_cpu)
        extents = dict(zip(operands[0].layout, _extents(operands[0].source) or (), strict=True))
        batch = extents["N"]
        heads = shape[0] // batch
        diagonal, masks = self._diagonal(scores.masks, (shape[1], shape[2]))
        mask = self._mask(masks, softmax, (batch, heads, shape[1], shape[2]))
        if masks and mask is None:
            return None
        if mask is not None:
            mask = self.cast_masks.setdefault(mask, call("cast", mask, dtype=str(kind.dtype)))
        scale = scores.factor * operands[0].factor * operands[1].factor
        if operands[2].factor != 1.0:
            return None
        values = dict(zip(operands[2].layout, _extents(operands[2].source) or (), strict=True))
        shared = operands[1].shared * times
        sizes = AttentionShape(batch, heads, shape[1], shape[2], extents["C"], values["C"], shared, diagonal)
        layout = self._wanted_layout(old, (batch, heads))
        if not self._has_kernel(sizes, [*(one.layout for one in operands), layout], str(kind.dtype)):
            return None
        read = [self.visit(operand.source) for operand in operands]
        made = call(
            "nn.contrib_attention",
            *read,
            *([] if mask is None else [mask]),
            heads=heads,
            scale=scale,
            query_layout=operands[0].layout,
            key_layout=operands[1].layout,
            value_layout=operands[2].layout,
            out_layout=layout,
            first_heads=[operand.first_head for operand in operands],
            shared=shared,
            diagonal=diagonal,
        )
        in_order = call("transpose", made, axes=(0, 2, 1, 3)) if layout == "NTHC" else made
        return call("reshape", in_order, newshape=_extents(old))

    def _has_kernel(self, sizes: AttentionShape, layouts: Sequence[str], dtype: str) -> bool:
        if self.target is None or self.on_cpu:
            return sizes.queries >= FEWEST_QUERIES or (self.on_cpu and reads_few_queries(sizes, layouts))
        return sizes.queries >= FEWEST_QUERIES and attention_refused(sizes, dtype, self.target) is None

    def _diagonal(
        self, masks: list[RelayExpr], extents: tuple[int, int]
    ) -> tuple[int | None, list[RelayExpr]]:
        """The diagonal of a causal mask among the masks, and the other masks."""
        for mask in masks if self.on_cpu else ():
            # The mask that stands for ``where`` is made anew each time.
            key = tuple(mask.args) if isinstance(mask, Call) and is_call(mask, "where") else (mask,)
            if key not in self.diagonals:
                self.diagonals[key] = _causal_diagonal(mask, extents)
            found = self.diagonals[key]
            if found is not None:
                return found, [one for one in masks if one is not mask]
        return None, masks

    def _scores(self, expr: RelayExpr) -> _Scores | None:
        """The scores of the softmax; None if another operator is between it and a product, or also reads the scores."""
        masks: list[RelayExpr] = []
        while isinstance(expr, Call) and self._is_read_once(expr):
            if _is_float_cast(expr):
                expr = expr.args[0]
                continue
            inner = _masked(expr)
            if inner is None:
                break
            expr = inner[0]
            masks.append(inner[1])
        if not self._is_read_once(expr):
            return None
        expr, factor = _unscaled(expr)
        product = self._unshaped(expr)
        if not isinstance(product, Call) or not is_call(product, "nn.batch_matmul"):
            return None
        return _Scores(product, factor, masks) if self._is_read_once(product) else None

    def _unshaped(self, expr: RelayExpr) -> RelayExpr:
        """The argument of a chain of reshapes and casts between floats that have no other user: scores are kept in
        float32 whatever type the graph gives them."""
        while isinstance(expr, Call) and self._is_read_once(expr):
            if not is_call(expr, "reshape") and not _is_float_cast(expr):
                break
            expr = expr.args[0]
        return expr

    def _is_read_once(self, expr: RelayExpr) -> bool:
        return len(self.readers.get(expr, ())) == 1

    def _mask(self, masks: Sequence[RelayExpr], softmax: Call, wanted: Extents) -> RelayExpr | None:
        """All masks as one of (batch, heads, keys, queries); None where one does not fit."""
        rank = len(_extents(softmax) or ())
        total: RelayExpr | None = None
        for mask in masks:
            made = self._turned_mask(mask, rank, wanted)
            if made is None:
                return None
            total = made if total is None else call("add", total, made)
        if total is None:
            return None
        full = (*wanted[:2], wanted[3], wanted[2])
        shape = _extents(total) or ()
        return total if all(extent in (1, whole) for extent, whole in zip(shape, full, strict=True)) else None

    def _turned_mask(self, mask: RelayExpr, rank: int, wanted: Extents) -> RelayExpr | None:
        found = self.masks.get((mask, wanted))
        if found is not None:
            return found
        shape = _extents(mask)
        if shape is None:
            return None
        shape = (1,) * (rank - len(shape)) + shape
        batch, heads, _, keys = wanted
        if rank == 3:
            shape = (1, 1, *shape[1:]) if shape[0] == 1 else (batch, heads, *shape[1:])
        if shape[3] != keys:
            return None
        turned = call("transpose", call("reshape", self.visit(mask), newshape=shape), axes=(0, 1, 3, 2))
        self.masks[mask, wanted] = turned
        return turned

    def _wanted_layout(self, old: Call, heads: Extents) -> str:
        """The order in which the result is read: tokens first where the only reader transposes it so, perhaps after it
        has cleared rows that see nothing."""
        reader = self._reader(old)
        if is_call_to(reader, "reshape") and (_extents(reader) or ())[:2] == heads:
            shape, reader = _extents(reader), self._reader(reader)
            if is_call_to(reader, "where") and _extents(reader) == shape:
                reader = self._reader(reader)
            if is_call_to(reader, "transpose") and tuple(reader.attrs.axes or ()) == (0, 2, 1, 3):
                return "NTHC"
        return "NHTC"

    def _reader(self, expr: RelayExpr) -> Any:
        found = self.readers.get(expr, [])
        return found[0] if len(found) == 1 else None


def is_call_to(expr: RelayExpr | None, name: str) -> bool:
    """True if there is an expression, and it calls this operator."""
    return expr is not None and is_call(expr, name)


def _readers(body: RelayExpr) -> dict[RelayExpr, list[RelayExpr]]:
    """Who reads each expression; the function itself reads its body."""
    found: dict[RelayExpr, list[RelayExpr]] = {body: [body]}
    stack = [body]
    while stack:
        expr = stack.pop()
        children: Any = expr.children()
        for child in children:
            known = found.get(child)
            if known is None:
                found[child] = [expr]
                stack.append(child)
            else:
                known.append(expr)
    return found


def _reshaped(expr: RelayExpr) -> RelayExpr:
    """The argument of a reshape."""
    while isinstance(expr, Call) and is_call(expr, "reshape"):
        expr = expr.args[0]
    return expr


def _masked(expr: Call) -> tuple[RelayExpr, RelayExpr] | None:
    """(scores, mask to add) where an expression masks scores."""
    shape = _extents(expr)
    if is_call(expr, "add"):
        for scores, mask in (expr.args, expr.args[::-1]):
            if _extents(scores) == shape and _leads_to_product(scores):
                return scores, mask
    if is_call(expr, "where"):
        kind: Any = made_type(expr)
        zero, lowest = const(0.0, str(kind.dtype)), const(float("-inf"), str(kind.dtype))
        for place, values in ((1, (zero, lowest)), (2, (lowest, zero))):
            other = scalar_value(expr.args[3 - place])
            scores = expr.args[place]
            if other == float("-inf") and _extents(scores) == shape and _leads_to_product(scores):
                return scores, call("where", expr.args[0], *values)
    return None


def _is_float_cast(expr: Call) -> bool:
    """True for a cast from one type of floats to another."""
    if not is_call(expr, "cast"):
        return False
    kinds = (made_type(expr), made_type(expr.args[0]))
    return all(isinstance(kind, TensorType) and str(kind.dtype) in FLOATS for kind in kinds)


def _gives_own_type(product: Call) -> bool:
    """True if a product gives the type of its factors."""
    kinds = [made_type(one) for one in (product, *product.args)]
    return len({str(kind.dtype) for kind in kinds if isinstance(kind, TensorType)}) == 1


def _leads_to_product(expr: RelayExpr) -> bool:
    """True if an expression is a product but for masks, factors and reshapes."""
    while isinstance(expr, Call):
        if is_call(expr, "nn.batch_matmul"):
            return True
        if is_call(expr, "reshape") or _is_float_cast(expr):
            expr = expr.args[0]
            continue
        if not is_call(expr, "add", "where", "multiply", "divide"):
            return False
        shape = _extents(expr)
        candidates = [one for one in expr.args if _extents(one) == shape and isinstance(one, Call)]
        if len(candidates) != 1:
            return False
        expr = candidates[0]
    return False


def _causal_diagonal(mask: RelayExpr, extents: tuple[int, int]) -> int | None:
    """The diagonal of a constant mask (queries, keys) that hides the keys behind it and nothing else."""
    shape = _extents(mask)
    if shape is None or shape[-2:] != extents or any(extent != 1 for extent in shape[:-2]):
        return None
    if mask not in constant_expressions(mask):
        return None
    value = np.asarray(Interpreter().run(mask)).reshape(extents)
    seen = value == 0
    diagonal = int(seen[0].sum()) - 1
    # A query that sees nothing is different with finite numbers.
    if diagonal < 0 or not (value[~seen] <= HIDDEN).all():
        return None
    return diagonal if np.array_equal(seen, np.tri(*extents, diagonal, dtype=bool)) else None


def _heads_apart(queries: RelayExpr, product: Extents, softmax: Extents) -> tuple[int, Extents]:
    """How many heads of queries are rows of one product because they share keys, and the extents (heads, queries, keys)
    of the scores with a product for each head."""
    if len(softmax) != 4 or softmax[3] != product[2] or product[0] % softmax[0]:
        return 1, product
    shared = product[0] // softmax[0]
    times = softmax[1] // shared
    if shared * times != softmax[1] or times * softmax[2] != product[1] or len(_extents(queries) or ()) != 3:
        return 1, product
    return times, (softmax[0] * softmax[1], softmax[2], softmax[3])


def _operands(parts: Sequence[RelayExpr], orders: Sequence[str], shares: bool) -> list[_Operand]:
    """Query, key and value without transposes, and keys and values that are not repeated if ``shares``; with one batch
    of heads, as they are, if their batches differ."""
    found = [_operand(part, order) for part, order in zip(parts, orders, strict=True)]
    fewer = [None if one is None else _not_repeated(one) for one in found[1:]]
    if shares and None not in fewer and len({one.shared for one in fewer if one is not None}) == 1:
        found[1:] = fewer
    batches = {
        dict(zip(one.layout, _extents(one.source) or (), strict=True))["N"]
        for one in found
        if one is not None
    }
    if None not in found and len(batches) == 1:
        return [one for one in found if one is not None]
    return [
        _Operand(call("reshape", part, newshape=(1, *(_extents(part) or ()))), f"NH{order}", 0, 1.0)
        for part, order in zip(parts, orders, strict=True)
    ]


def _operand(expr: RelayExpr, order: str) -> _Operand | None:
    """Where an operand (heads, tokens, channels) comes from; None where heads were not put together from batches."""
    expr, factor = _unscaled(expr)
    inner = expr.args[0] if isinstance(expr, Call) and is_call(expr, "reshape") else None
    shape, whole = _extents(expr), None if inner is None else _extents(inner)
    if inner is not None and whole is not None and len(whole) == 5 and is_call(inner, "broadcast_to"):
        # Heads that were repeated and put together with batches in one step.
        whole = (whole[0], whole[1] * whole[2], *whole[3:])
        inner = call("reshape", inner, newshape=whole)
    if inner is None or shape is None or whole is None or len(whole) != 4 or whole[2:] != shape[1:]:
        return None
    layout = f"NH{order}"
    inner, more = _unscaled(inner)
    factor *= more
    if isinstance(inner, Call) and is_call(inner, "transpose"):
        attrs: Any = inner.attrs
        axes = attrs.axes if attrs.axes is not None else (3, 2, 1, 0)
        layout = "".join(
            letter for _, letter in sorted(zip((axis % 4 for axis in axes), layout, strict=True))
        )
        inner, more = _unscaled(inner.args[0])
        factor *= more
    return _part_of_split(inner, layout, factor) or _Operand(inner, layout, 0, factor)


def _not_repeated(operand: _Operand) -> _Operand | None:
    """An operand before its heads were repeated; None if they were not."""
    expr, layout = operand.source, operand.layout
    whole, place = _extents(expr), layout.index("H")
    if not isinstance(expr, Call) or whole is None or operand.first_head:
        return None
    attrs: Any = expr.attrs
    if is_call(expr, "repeat") and attrs.axis is not None and attrs.axis % 4 == place:
        return replace(operand, source=expr.args[0], shared=int(attrs.repeats))
    spreading = expr.args[0]
    if (
        not is_call(expr, "reshape")
        or not isinstance(spreading, Call)
        or not is_call(spreading, "broadcast_to")
    ):
        return None
    apart = _extents(spreading.args[0])
    if apart is None or len(apart) != 5 or apart[place + 1] != 1 or whole[place] % apart[place]:
        return None
    fewer = (*apart[: place + 1], *apart[place + 2 :])
    shared = whole[place] // apart[place]
    spread = (*apart[: place + 1], shared, *apart[place + 2 :])
    if _extents(spreading) != spread or whole != (
        *fewer[:place],
        fewer[place] * shared,
        *fewer[place + 1 :],
    ):
        return None
    source = call("reshape", spreading.args[0], newshape=fewer)
    return replace(operand, source=source, shared=shared)


def _part_of_split(expr: RelayExpr, layout: str, factor: float) -> _Operand | None:
    """The heads of one part of a projection, found in the whole of it."""
    extents, part = _extents(expr), _reshaped(expr)
    if layout != "NTHC" or extents is None:
        return None
    found = _cut(part)
    own = _extents(part)
    if found is None or own is None:
        return None
    source, start = found
    whole = _extents(source)
    heads, size = extents[2:]
    if whole is None or own[-1] != heads * size or whole[-1] % size or start % size:
        return None
    together = call("reshape", source, newshape=(*extents[:2], whole[-1] // size, size))
    return _Operand(together, layout, start // size, factor)


def _cut(part: RelayExpr) -> tuple[RelayExpr, int] | None:
    """The tensor that a part was cut from along the last axis only, and where it starts."""
    own = _extents(part)
    if isinstance(part, TupleGetItem) and is_call(part.tuple_value, "split"):
        split: Any = part.tuple_value
        whole = _extents(split.args[0])
        if whole is None or own is None or split.attrs.axis not in (-1, len(whole) - 1):
            return None
        sections = split.attrs.indices_or_sections
        if isinstance(sections, int):
            return split.args[0], part.index * own[-1]
        return split.args[0], sections[part.index - 1] if part.index else 0
    if isinstance(part, Call) and is_call(part, "strided_slice"):
        attrs: Any = part.attrs
        whole = _extents(part.args[0])
        if whole is None or own is None or whole[:-1] != own[:-1]:
            return None
        last = len(whole) - 1
        axes = range(len(attrs.begin)) if attrs.axes is None else [axis % len(whole) for axis in attrs.axes]
        begins = dict(zip(axes, attrs.begin, strict=True))
        if any(step != 1 for step in attrs.strides or ()) or last not in begins:
            return None
        begin = int(begins[last])
        return part.args[0], begin + whole[last] if begin < 0 else begin
    return None


@dataclass
class FuseAttention(FunctionPass):
    """Replace products with a softmax between them by ``nn.contrib_attention``, if the target has a kernel for it."""

    name = "FuseAttention"
    opt_level = 3

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        target = Target.current()
        if target is not None and not {"cpu", "cuda"} & set(target.keys):
            return func
        return rewritten(_Fuse(func.body, target), func)
