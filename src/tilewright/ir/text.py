"""The text of expressions, in TVMScript syntax.

``ExprPrinter`` prints pieces of text in order and adds parentheses only where Python's precedence requires them, so the
time is linear in the length of the text, however deep the expression. The printer of statements and functions derives
from it and chooses the names of variables and buffers.

``expr_text`` is used by ``repr``: the same syntax, but shorter (inferable types are left out, flat memory is indexed
with brackets), and truncated with ``…`` where the expression is very deep or very large.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from tilewright.ir import expr as nodes
from tilewright.ir.op import Op
from tilewright.support.dtype import FLOAT32, INT32
from tilewright.support.node import Node
from tilewright.support.recursion import recursion_room

OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = 1, 2, 3, 4, 9, 10, 11, 13
"""Precedence of Python's operators; the gap holds the bitwise ones, which are written as calls."""

REPR_NODES, REPR_DEPTH = 2000, 100
"""How many nodes ``repr`` shows, and how deep it goes."""

ELLIPSIS = "…"

_INFIX: dict[str, tuple[str, int]] = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "floor_div": ("//", PRODUCT),
    "floor_mod": ("%", PRODUCT),
    "eq": ("==", COMPARISON),
    "ne": ("!=", COMPARISON),
    "lt": ("<", COMPARISON),
    "le": ("<=", COMPARISON),
    "gt": (">", COMPARISON),
    "ge": (">=", COMPARISON),
    "and": ("and", AND),
    "or": ("or", OR),
}

_SHORT_CALLS = frozenset({"tir.isnan", "tir.isinf", "tir.isfinite", "tir.isnullptr"})
"""Calls whose type is always bool: ``repr`` leaves it out."""


class ExprPrinter:
    """Writes expressions. Subclasses override ``var_name`` and ``buffer_name``, or ``visit_<node>`` of a node."""

    _handlers: ClassVar[dict[type, Callable[[Any, Any], None]]] = {}

    def __init__(self, prefix: str = "T", *, short: bool = False, node_limit: int | None = None) -> None:
        self.prefix = f"{prefix}." if prefix else ""
        self.short = short
        self.pieces: list[str] = []
        self._nodes_left = -1 if node_limit is None else node_limit
        self._depth = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._handlers = {}

    def text(self, node: Any) -> str:
        """The text of one expression."""
        saved, self.pieces = self.pieces, []
        with recursion_room():
            self.print(node)
        made, self.pieces = "".join(self.pieces), saved
        return made

    def var_name(self, var: nodes.Var) -> str:
        """The name under which a variable is written."""
        return var.name

    def buffer_name(self, buffer: Any) -> str:
        """The name under which a buffer or tensor is written."""
        return str(getattr(buffer, "name", None) or buffer.name_hint)

    # Writing

    def write(self, text: str) -> None:
        """Append to the text."""
        self.pieces.append(text)

    def print(self, node: Any) -> None:
        """Write a node."""
        handler = self._handlers.get(type(node)) or self._find_handler(type(node))
        if self._nodes_left < 0:
            handler(self, node)
        elif self._nodes_left == 0 or self._depth == REPR_DEPTH:
            self.pieces.append(ELLIPSIS)
        else:
            self._nodes_left -= 1
            self._depth += 1
            handler(self, node)
            self._depth -= 1

    def print_operand(self, node: Any, needed: int) -> None:
        """Write a node, in parentheses if its operator binds less tightly than ``needed``."""
        if self.precedence(node) < needed:
            self.pieces.append("(")
            self.print(node)
            self.pieces.append(")")
        else:
            self.print(node)

    def print_list(self, items: Iterable[Any]) -> None:
        """Write nodes separated by commas."""
        separator = ""
        for item in items:
            self.pieces.append(separator)
            separator = ", "
            self.print(item)
            if self._nodes_left == 0:
                self.pieces.append(f", {ELLIPSIS}")
                break

    def print_call(self, name: str, *arguments: Any) -> None:
        """Write a call; strings among the arguments are written as they are."""
        self.pieces.append(f"{self.prefix}{name}(")
        for position, argument in enumerate(arguments):
            if position:
                self.pieces.append(", ")
            if isinstance(argument, str) and not isinstance(argument, Node):
                self.pieces.append(argument)
            elif isinstance(argument, (tuple, list)):
                self.pieces.append("[")
                self.print_list(argument)
                self.pieces.append("]")
            else:
                self.print(argument)
        self.pieces.append(")")

    def precedence(self, node: Any) -> int:
        """How tightly the outermost operator of a node's text binds."""
        infix = _INFIX.get(getattr(node, "node_kind", ""))
        if infix is not None:
            return infix[1]
        if isinstance(node, nodes.Div):
            return PRODUCT if node.dtype.is_float else ATOM
        if isinstance(node, nodes.Not):
            return NOT
        if isinstance(node, (nodes.IntImm, nodes.FloatImm)):
            plain = node.dtype is INT32 or (self.short and node.dtype is FLOAT32)
            return UNARY if plain and node.value < 0 else ATOM
        return ATOM

    @classmethod
    def _find_handler(cls, node_class: type) -> Callable[[Any, Any], None]:
        """The method for a node class or its nearest base; infix nodes share one."""
        for base in node_class.__mro__:
            kind = base.__dict__.get("node_kind", "")
            found = getattr(cls, f"visit_{kind}", None) if kind else None
            if found is None and kind in _INFIX:
                found = cls.print_infix
            if found is not None:
                cls._handlers[node_class] = found
                return found  # type: ignore[no-any-return]
        cls._handlers[node_class] = cls.visit_default
        return cls.visit_default

    # Nodes

    def visit_default(self, node: Any) -> None:
        """An expression of another package: its class and parts. What is not an expression has its own text."""
        if not isinstance(node, nodes.PrimExpr):
            self.write(str(node))
            return
        self.write(f"{type(node).__name__}(")
        self.print_list(node.children())
        self.write(")")

    def print_infix(self, node: Any) -> None:
        """Two operands around a symbol; equal precedence groups to the left, comparisons never chain."""
        symbol, precedence = _INFIX[node.node_kind]
        self.print_operands(node, symbol, precedence)

    def print_operands(self, node: Any, symbol: str, precedence: int) -> None:
        """The operands of a binary node around its symbol."""
        self.print_operand(node.a, precedence + 1 if precedence == COMPARISON else precedence)
        self.write(f" {symbol} ")
        self.print_operand(node.b, precedence + 1)

    def visit_div(self, node: nodes.Div) -> None:
        """``/`` for floats; integers name the rounding."""
        if node.dtype.is_float:
            self.print_operands(node, "/", PRODUCT)
        else:
            self.print_call("truncdiv", node.a, node.b)

    def visit_mod(self, node: nodes.Mod) -> None:
        """The remainder that has the dividend's sign."""
        self.print_call("truncmod", node.a, node.b)

    def visit_min(self, node: nodes.Min) -> None:
        self.print_call("min", node.a, node.b)

    def visit_max(self, node: nodes.Max) -> None:
        self.print_call("max", node.a, node.b)

    def visit_not(self, node: nodes.Not) -> None:
        self.write("not ")
        self.print_operand(node.a, NOT)

    def visit_int_imm(self, node: nodes.IntImm) -> None:
        """An int32 or bool as Python writes it, other types with their name."""
        if node.dtype is INT32:
            self.write(str(node.value))
        elif node.dtype.is_bool:
            self.write(str(bool(node.value)))
        elif node.dtype.is_handle:
            self.print_call("IntImm", '"handle"', str(node.value))
        else:
            self.print_call(node.dtype, str(node.value))

    def visit_float_imm(self, node: nodes.FloatImm) -> None:
        """The shortest digits that give the value back; what is not a number in quotes."""
        finite = math.isfinite(node.value)
        digits = repr(node.value) if finite else f'"{node.value!r}"'
        if self.short and finite and node.dtype is FLOAT32:
            self.write(digits)
        elif node.dtype.type_code < 128:
            self.print_call(node.dtype, digits)
        else:
            self.print_call("FloatImm", f'"{node.dtype}"', digits)

    def visit_string_imm(self, node: nodes.StringImm) -> None:
        self.write(json.dumps(node.value, ensure_ascii=False))

    def visit_var(self, node: nodes.Var) -> None:
        self.write(self.var_name(node))

    def visit_iter_var(self, node: nodes.IterVar) -> None:
        """An axis as an expression is its variable."""
        self.write(self.var_name(node.var))

    def visit_cast(self, node: nodes.Cast) -> None:
        """The value and the type's name."""
        self.print_call("cast", node.value, f'"{node.dtype}"')

    def visit_select(self, node: nodes.Select) -> None:
        self.print_call("Select", node.condition, node.true_value, node.false_value)

    def visit_load(self, node: nodes.Load) -> None:
        """Flat memory; the predicate where there is one."""
        predicate = () if nodes.is_const(node.predicate, 1) else (node.predicate,)
        if self.short and not predicate:
            self.print_element(self.var_name(node.buffer_var), (node.index,))
        else:
            self.print_call("load", f'"{node.dtype}"', node.buffer_var, node.index, *predicate)

    def print_element(self, name: str, indices: Iterable[Any]) -> None:
        """A name with indices in brackets; ``()`` where there are none."""
        self.write(f"{name}[")
        position = len(self.pieces)
        self.print_list(indices)
        self.write("]" if len(self.pieces) > position else "()]")

    def visit_buffer_load(self, node: nodes.BufferLoad) -> None:
        self.print_element(self.buffer_name(node.buffer), node.indices)

    def visit_producer_load(self, node: nodes.ProducerLoad) -> None:
        self.print_element(self.buffer_name(node.producer), node.indices)

    def visit_ramp(self, node: nodes.Ramp) -> None:
        self.print_call("ramp", node.base, node.stride, str(node.lanes))

    def visit_broadcast(self, node: nodes.Broadcast) -> None:
        self.print_call("broadcast", node.value, str(node.lanes))

    def visit_shuffle(self, node: nodes.Shuffle) -> None:
        """Vectors and the lanes picked from them."""
        self.print_call("shuffle", node.vectors, node.indices)

    def visit_let(self, node: nodes.Let) -> None:
        self.print_call("let", node.var, node.value, node.body)

    def visit_any(self, node: nodes.Any) -> None:
        """A dimension that is not known."""
        self.write("?" if self.short else f"{self.prefix}Any()")

    def visit_call(self, node: nodes.Call) -> None:
        """The operator's name, the arguments, and the type where it is not that of the first argument."""
        if not isinstance(node.op, Op):
            name, leading = "call_function", [json.dumps(str(getattr(node.op, "name_hint", node.op)))]
        elif node.op.name.startswith("tir."):
            name, leading = node.op.name.removeprefix("tir."), []
        else:
            name, leading = "call_op", [json.dumps(node.op.name)]
        self.write(f"{self.prefix}{name}(")
        self.write(", ".join(leading) + (", " if leading and node.args else ""))
        self.print_list(node.args)
        guessed = bool(node.args) and node.args[0].dtype is node.dtype
        if not (self.short and (guessed or getattr(node.op, "name", "") in _SHORT_CALLS)):
            self.write(f'{", " if node.args or leading else ""}dtype="{node.dtype}"')
        self.write(")")

    def visit_reduce(self, node: nodes.Reduce) -> None:
        """Combiner, sources, axes with their ranges, condition, the number of the result, and the start value."""
        self.write(f"{self.prefix}Reduce(")
        self.visit_comm_reducer(node.combiner)
        self.write(", [")
        self.print_list(node.source)
        self.write("], [")
        for position, axis in enumerate(node.axis):
            self.write(", " if position else "")
            self.print_axis(axis)
        self.write("], ")
        self.print(node.condition)
        self.write(f", {node.value_index}")
        if node.init:
            self.write(", [")
            self.print_list(node.init)
            self.write("]")
        self.write(")")

    def print_axis(self, axis: nodes.IterVar) -> None:
        """An axis with its range."""
        name = self.var_name(axis.var)
        if axis.dom is None:
            self.print_call("iter_var", name)
        else:
            self.print_call("iter_var", name, axis.dom.min, axis.dom.extent)

    def visit_comm_reducer(self, node: nodes.CommReducer) -> None:
        """A lambda of both sides, and the identity."""
        names = ", ".join([self.var_name(var) for var in (*node.lhs, *node.rhs)])
        self.write(f"{self.prefix}comm_reducer(lambda {names}: ")
        many = len(node.result) > 1
        self.write("(" if many else "")
        self.print_list(node.result)
        self.write("), [" if many else ", [")
        self.print_list(node.identity_element)
        self.write("])")

    def visit_range(self, node: nodes.Range) -> None:
        self.write("range(min=")
        self.print(node.min)
        self.write(", ext=")
        self.print(node.extent)
        self.write(")")


def expr_text(expr: Any) -> str:
    """A short text of an expression, for messages and ``repr``; see the module's text."""
    return ExprPrinter(short=True, node_limit=REPR_NODES).text(expr)
