"""The text form of graph-level programs.

    #[version = "0.0.5"]
    def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
      %0 = exp(%x) /* ty=Tensor[(2, 3), float32] */;
      add(%0, %0) /* ty=Tensor[(2, 3), float32] */
    }

A numbered name refers to an expression of the graph: defining it computes nothing, it says that uses are shared. It is
defined in the innermost block that contains all of its uses. ``let`` orders evaluation. Numbers are constants (``1f``,
``2``, ``3i64``, ``True``); other constants are in a metadata section, as JSON. A free variable is declared by
``free_var``.

``relay.parser`` parses the text to the same program, with the same names. Time is linear in the length of the text,
however deep the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.attrs import Attrs, DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import PrimExpr, SizeVar
from tilewright.ir.expr import Var as DimensionVar
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import VERSION_HEADER, Type, TypeVar
from tilewright.ir.type_text import DimensionPrinter, TypePrinter, is_expressible
from tilewright.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
)
from tilewright.relay.function import Function
from tilewright.relay.literals import (
    METADATA_HEADER,
    MetaTable,
    Names,
    is_identifier,
    name_text,
    scalar_text,
    value_text,
    word_text,
)
from tilewright.relay.op.attributes import OpAttrs
from tilewright.relay.placement import LEAVES, Placement, bodies
from tilewright.support.dtype import INT32
from tilewright.support.recursion import recursion_room
from tilewright.tir.function import PrimFunc
from tilewright.tir.script.function_printer import FunctionPrinter
from tilewright.tir.script.names import NameTable

Annotate = Callable[[Any], str]
Document = list[Any]
"""Pieces of text in order: strings, documents, and line breaks as the string of one."""

LINE = "\n"
RESERVED_TYPE_NAMES = frozenset({"Tensor", "fn", "ref", "meta", "_"})
OMITTED = "/* Constants are left out: astext(show_meta_data=True) adds a section that holds them. */"


class Indented(list[Any]):
    """A document whose lines stand two columns further right."""


def render(document: Document) -> str:
    """The text of a document."""
    pieces: list[str] = []
    stack = [(iter(document), LINE)]
    while stack:
        items, line_break = stack[-1]
        for item in items:
            if isinstance(item, str):
                pieces.append(line_break if item == LINE else item)
            else:
                stack.append((iter(item), f"{line_break}  " if isinstance(item, Indented) else line_break))
                break
        else:
            stack.pop()
    return "".join(pieces)


def _joined(documents: Sequence[Any]) -> Document:
    """Documents with commas between them."""
    made: Document = []
    for position, document in enumerate(documents):
        if position:
            made.append(", ")
        made.append(document)
    return made


def _braced(body: Document) -> Document:
    return ["{", Indented([LINE, body]), LINE, "}"]


class _Dimensions(DimensionPrinter):
    """Names the variables of symbolic shapes: one variable, one name."""

    def __init__(self, names: dict[DimensionVar, str], given: Names) -> None:
        super().__init__()
        self.names, self.given = names, given

    def var_name(self, var: DimensionVar) -> str:
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = self.given.fresh(var.name if is_identifier(var.name) else "n")
        size = isinstance(var, SizeVar)
        return name if var.dtype is INT32 and not size else f"{name}: {'size_' if size else ''}{var.dtype}"


class _Types(TypePrinter):
    """Types within one text: variables have unique names, and dimensions without words go to the meta data."""

    def __init__(self, meta: MetaTable) -> None:
        self.meta = meta
        self.dimension_names: dict[DimensionVar, str] = {}
        self.given_dimensions = Names(RESERVED_TYPE_NAMES)
        self.reserved = RESERVED_TYPE_NAMES
        self.start_scope()

    def start_scope(self) -> None:
        """Forget the names of type variables: the next definition has its own."""
        self.names: dict[TypeVar, str] = {}
        self.given = Names(self.reserved)

    def variable_name(self, variable: TypeVar) -> str:
        name = self.names.get(variable)
        if name is None:
            wanted = variable.name_hint if is_identifier(variable.name_hint) else "T"
            name = self.names[variable] = self.given.fresh(wanted)
        return name

    def dimension(self, extent: PrimExpr) -> str:
        if not is_expressible(extent):
            return self.meta.reference(extent)
        return _Dimensions(self.dimension_names, self.given_dimensions).text(extent)


class Printer(Functor):
    """Writes expressions and functions; one for a whole text."""

    def __init__(self, annotate: Annotate | None = None) -> None:
        self.annotate = annotate
        self.meta = MetaTable()
        self.types = _Types(self.meta)
        self._start_scope()

    def _start_scope(self) -> None:
        self.types.start_scope()
        self.names = Names()
        self.written: dict[RelayExpr, Document] = {}
        self.blocks: dict[int, Document] = {}
        self.temporaries = 0

    # Whole texts

    def expression(self, root: RelayExpr) -> Document:
        """An expression with the definitions that it needs."""
        self._start_scope()
        self.place = Placement(root)
        self.free_block = 0
        block = self.blocks[0] = []
        block.append(self.in_place(root))
        return block

    def definition(self, variable: GlobalVar, function: Function) -> Document:
        """A function of a module."""
        self._start_scope()
        self.place = Placement(function)
        self.free_block = self.place.first_block[function]
        self.blocks[0] = []
        return self.function(f"def @{name_text(variable.name_hint)}", function)

    # Where an expression is written

    def operand(self, expr: RelayExpr) -> Document:
        """The text of an expression where it is used; its definition is written on the first use."""
        found = self.written.get(expr)
        if found is not None:
            return found
        if isinstance(expr, LEAVES):
            return self.leaf(expr)
        document = self.described(expr)
        name: Document = [f"%{self.temporaries}"]
        self.temporaries += 1
        self.written[expr] = name
        self.blocks[self.place.home[expr]].append([name, " = ", document, ";", LINE])
        return name

    def head(self, expr: RelayExpr) -> Document:
        """The text before a dot or an argument list; a constant, which can be neither in a program that has types,
        in parentheses."""
        document = self.operand(expr)
        return ["(", document, ")"] if isinstance(expr, Constant) else document

    def in_place(self, expr: RelayExpr) -> Document:
        """An expression at the end of a block or behind ``let``: written there, if it is used nowhere else."""
        if isinstance(expr, LEAVES) or self.place.uses[expr] > 1:
            return self.operand(expr)
        return self.described(expr)

    def described(self, expr: RelayExpr) -> Document:
        """An expression in full, with the comment on it."""
        handler = self._handlers.get(type(expr)) or self._handler(type(expr))
        document = handler(self, expr)
        comment = self.comment(expr)
        return [document, comment] if comment else document

    def comment(self, expr: RelayExpr) -> str:
        """The type of a call or constant, or what the user's function says."""
        if self.annotate is not None:
            return self.annotate(expr)
        found = getattr(expr, "_checked_type_", None)
        return f" /* ty={self.types.text(found)} */" if found is not None and _shows_type(expr) else ""

    def block(self, number: int, body: RelayExpr) -> Document:
        """The statements of a block and its result."""
        statements = self.blocks[number] = []
        result = self.in_place(body)
        statements.append(result)
        return statements

    # Leaves and names

    def leaf(self, expr: RelayExpr) -> Document:
        """The text of an expression that needs no definition."""
        if isinstance(expr, Constant):
            scalar = scalar_text(expr.data)
            return [scalar if scalar is not None else self.meta.reference(expr), self.comment(expr)]
        if isinstance(expr, Var):
            declaration = self.bind(expr)
            self.blocks[self.free_block].append(["free_var ", declaration, ";", LINE])
            return self.written[expr]
        if isinstance(expr, Op):
            return [expr.name]
        if isinstance(expr, GlobalVar):
            return [f"@{name_text(expr.name_hint)}"]
        return [expr.name_hint]  # type: ignore[attr-defined]

    def bind(self, var: Var) -> Document:
        """Name a variable; gives its declaration."""
        wanted = f"v{var.name_hint}" if var.name_hint[:1].isdigit() else var.name_hint
        name = f"%{name_text(self.names.fresh(wanted))}"
        self.written[var] = [name]
        if var.type_annotation is None:
            return [name]
        return [f"{name}: {self.types.text(var.type_annotation)}"]

    def attributes(self, pairs: Sequence[tuple[str, Any]]) -> list[str]:
        """Attributes as written among arguments or parameters."""
        return [f"{word_text(name)}={value_text(value, self.meta)}" for name, value in pairs]

    # Nodes

    def visit_default(self, node: Any) -> Document:
        """Expressions of passes, which have no text form."""
        return [f"<{type(node).__name__}>"]

    def function(self, prefix: str, fn: Function) -> Document:
        """A function behind ``fn`` or its global name."""
        generic = self.types.parameters(fn.type_params)
        parameters: list[Any] = [self.bind(parameter) for parameter in fn.params]
        parameters += self.attributes(list(fn.attrs.items()))
        result = f"-> {self.types.text(fn.ret_type)} " if fn.ret_type is not None else ""
        body = self.block(self.place.first_block[fn], fn.body)
        return [prefix, generic, "(", _joined(parameters), ") ", result, _braced(body)]

    def visit_function(self, fn: Function) -> Document:
        return self.function("fn ", fn)

    def visit_call(self, call: Call) -> Document:
        """The callee and its arguments; attributes by name."""
        arguments: list[Any] = [self.operand(argument) for argument in call.args]
        arguments += self.attributes(_call_attributes(call))
        callee = self.head(call.op)
        types = f"[{self.types.sequence(call.type_args)}]" if call.type_args else ""
        if isinstance(call.op, Constructor) and not call.op.inputs and not arguments:
            return [callee, types]
        return [callee, types, "(", _joined(arguments), ")"]

    def visit_tuple(self, tup: Tuple) -> Document:
        """Fields in parentheses; a comma tells a tuple of one from its field."""
        fields = [self.operand(field) for field in tup.fields]
        return ["(", _joined(fields), ",)" if len(fields) == 1 else ")"]

    def visit_tuple_getitem(self, item: TupleGetItem) -> Document:
        """The number of the field behind a dot."""
        return [self.head(item.tuple_value), f".{item.index}"]

    def visit_let(self, let: Let) -> Document:
        """A chain of definitions, in the block around it or in parentheses."""
        number = self.place.first_block[let]
        wrapped = number != self.place.home[let]
        if wrapped:
            self.blocks[number] = []
        statements = self.blocks[number]
        current: RelayExpr = let
        while isinstance(current, Let) and self.place.first_block[current] == number:
            declaration = self.bind(current.var)
            value = self.in_place(current.value)
            statements.append(["let ", declaration, " = ", value, ";", LINE])
            current = current.body
        result = self.in_place(current)
        if not wrapped:
            return result
        statements.append(result)
        return ["(", Indented([LINE, statements]), LINE, ")"]

    def visit_if(self, ite: If) -> Document:
        condition = self.operand(ite.cond)
        first = self.place.first_block[ite]
        chosen = self.block(first, ite.true_branch)
        other = self.block(first + 1, ite.false_branch)
        return ["if (", condition, ") ", _braced(chosen), " else ", _braced(other)]

    def visit_match(self, match: Match) -> Document:
        """The value and a block for each clause; ``match?`` where a value may match none."""
        data = self.operand(match.data)
        clauses: Document = Indented()
        first = self.place.first_block.get(match, 0)
        for position, body in enumerate(bodies(match)):
            pattern = self.pattern(match.clauses[position].lhs)
            clauses += [LINE, pattern, " => ", _braced(self.block(first + position, body)), ","]
        return ["match (" if match.complete else "match? (", data, ") {", clauses, LINE, "}"]

    def pattern(self, pattern: Pattern) -> Document:
        """The pattern of a clause."""
        if isinstance(pattern, PatternVar):
            return self.bind(pattern.var)
        if isinstance(pattern, PatternConstructor):
            name = pattern.constructor.name_hint
            parts = [self.pattern(inner) for inner in pattern.patterns]
            return [name, "(", _joined(parts), ")"] if parts else [name]
        if isinstance(pattern, PatternTuple):
            parts = [self.pattern(inner) for inner in pattern.patterns]
            return ["(", _joined(parts), ",)" if len(parts) == 1 else ")"]
        return ["_"]

    def visit_ref_create(self, ref: RefCreate) -> Document:
        return ["ref(", self.operand(ref.value), ")"]

    def visit_ref_read(self, ref: RefRead) -> Document:
        return ["ref_read(", self.operand(ref.ref), ")"]

    def visit_ref_write(self, ref: RefWrite) -> Document:
        return ["ref_write(", _joined([self.operand(ref.ref), self.operand(ref.value)]), ")"]


def _shows_type(expr: RelayExpr) -> bool:
    """A call shows its type, and so does a constant."""
    return isinstance(expr, (Call, Constant))


def _call_attributes(call: Call) -> Sequence[tuple[str, Any]]:
    """The attributes that are not as the operator has them by default. Those of another class than the operator's name
    the class."""
    attrs = call.attrs
    if attrs is None:
        return ()
    pairs = list(attrs.changed() if isinstance(attrs, OpAttrs) else attrs.items())
    expected = call.op.get_attr("AttrsClass") if isinstance(call.op, Op) else None
    if type(attrs) is expected:
        return pairs
    return [*pairs, ("attrs_type_key", _type_key(attrs))]


def _type_key(attrs: Attrs) -> str:
    return (
        "DictAttrs" if isinstance(attrs, DictAttrs) else str(getattr(attrs, "type_key", type(attrs).__name__))
    )


def _script(name: str, function: PrimFunc) -> str:
    """A loop-level function within a module, in TVMScript."""
    printer = FunctionPrinter("T", names=NameTable(frozenset({"T"})))
    printer.function(name, function)
    return "".join(printer.pieces).lstrip("\n")


def _finished(printer: Printer, text: str, show_meta_data: bool, header: bool) -> str:
    """The text between its version and its meta data."""
    lines = [VERSION_HEADER, text] if header else [text]
    if printer.meta.values and show_meta_data:
        lines += [METADATA_HEADER, printer.meta.section()]
    elif printer.meta.values and header:
        lines.append(OMITTED)
    return "\n".join(lines)


def _module_text(printer: Printer, module: IRModule) -> str:
    parts: list[str] = []
    printer.types.reserved |= {variable.name_hint for variable in module.type_definitions}
    if len(module.attrs):
        parts.append(f"#[attributes = {value_text(dict(module.attrs.items()), printer.meta)}]\n")
    for data in module.type_definitions.values():
        printer.types.start_scope()
        parts.append(f"{printer.types.definition(data)}\n")
    for variable, function in module.functions.items():
        if isinstance(function, Function):
            parts.append(f"{render(printer.definition(variable, function))}\n")
        elif isinstance(function, PrimFunc):
            parts.append(f"{_script(variable.name_hint, function)}\n")
        else:
            parts.append(f"/* @{variable.name_hint} is {type(function).__name__} */\n")
    return "\n".join(parts)


def _text(node: Any, show_meta_data: bool, annotate: Annotate | None, header: bool) -> str:
    if isinstance(node, TupleWrapper):
        node = node.astuple()
    if isinstance(node, PrimFunc) or (isinstance(node, IRModule) and _is_loop_level(node)):
        return node.script() if isinstance(node, IRModule) else repr(node)
    printer = Printer(annotate)
    with recursion_room():
        if isinstance(node, IRModule):
            text = _module_text(printer, node)
        elif isinstance(node, Type):
            text = printer.types.text(node)
        else:
            text = render(printer.expression(node))
        return _finished(printer, text, show_meta_data, header)


def _is_loop_level(module: IRModule) -> bool:
    """True for a module that has only loop-level functions: its text form is TVMScript."""
    return (
        bool(module.functions)
        and not module.type_definitions
        and all(isinstance(function, PrimFunc) for function in module.functions.values())
    )


def astext(node: Any, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """An expression, type or module in the text form. ``annotate`` gives the comment on an expression, in place of its
    type."""
    return _text(node, show_meta_data, annotate, header=True)


def pretty_print(node: Any) -> str:
    """The text to look at: without version and meta data."""
    return _text(node, show_meta_data=False, annotate=None, header=False)
