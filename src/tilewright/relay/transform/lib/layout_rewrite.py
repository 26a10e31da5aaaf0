"""Rewriting a program to other data layouts, for AlterOpLayout and ConvertLayout.

The traversal goes from arguments to results. Every tensor exists in one or more forms, one per layout in which it has
been computed or requested. The layout rule of a call is first evaluated with nothing offered, which gives its layouts
in the current program. Then the pass may replace the call. The rule of the new call, offered the current layouts of the
arguments, says what it requires and returns; arguments are passed in the required form, and a ``layout_transform`` is
created only if no earlier call needed that form. Operators without a rule, and results of the function, use the layout
of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call as make_call
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout
from tilewright.support.span import span_scope
from tilewright.tir.data_layout import Layout

IMAGE = Layout("NCHW")

Replace = Callable[[Call, list[RelayExpr], list[Any]], RelayExpr | None]
"""(call, arguments in the layouts of the program, their types) to the call in its place, or None to keep it."""


@dataclass(eq=False)
class Value:
    """A tensor: its layout in the program, if that is known, and the forms in which it exists."""

    home: MaybeLayout
    newest: MaybeLayout
    forms: dict[str, RelayExpr] = field(default_factory=dict)
    """By the layout's name; under "" where the layout is not known."""

    @staticmethod
    def unknown(expr: RelayExpr) -> Value:
        """A tensor of whose layout nothing is known."""
        return Value(None, None, {"": expr})

    def learn(self, layout: MaybeLayout) -> None:
        """The program's layout of the tensor, found where it is used."""
        if self.home is None and layout is not None:
            self.home = self.newest = layout
            self.forms[layout.name] = self.forms[""]

    def seen_as(self, layout: MaybeLayout) -> Value:
        """The tensor as a user with this layout for it, in the program, sees it. Where what made it and what uses it
        call its axes differently, the names of the one say nothing to the other."""
        self.learn(layout)
        if layout is None or self.home == layout:
            return self
        return Value(layout, layout, {layout.name: self.form(self.home)})

    def form(self, layout: MaybeLayout) -> RelayExpr:
        """The tensor in a layout; as it is in the program for None."""
        wanted = layout if layout is not None else self.home
        if wanted is None or self.home is None:
            return next(iter(self.forms.values()))
        made = self.forms.get(wanted.name)
        if made is None:
            source = self.newest if self.newest is not None else self.home
            if wanted == self.home or source.name not in self.forms:
                source = next(Layout(name) for name in self.forms if name)
            made = self.forms[wanted.name] = _transformed(self.forms[source.name], source, wanted)
        return made


def _transformed(expr: RelayExpr, source: Layout, wanted: Layout) -> RelayExpr:
    """The tensor brought to another layout; axes that its own lacks have size one."""
    missing = [axis for axis in wanted.primal_axes() if axis not in source]
    if missing:
        expr = make_call("expand_dims", expr, axis=0, num_newaxis=len(missing))
        source = Layout("".join(missing) + source.name)
    if source == wanted:
        return expr
    return make_call("layout_transform", expr, src_layout=source.name, dst_layout=wanted.name)


class LayoutRewriter(ExprMutator):
    """Rewrites one function. ``memo_map`` has expressions in the program's layouts; ``values`` the tensors."""

    def __init__(self, replace: Replace, wanted: Mapping[RelayExpr, Layout]) -> None:
        super().__init__()
        self.replace = replace
        self.wanted = wanted
        self.values: dict[RelayExpr, list[Value]] = {}

    # The tensors of an expression

    def tensors(self, expr: RelayExpr) -> list[Value]:
        """The tensors of an expression, tuples flattened."""
        found = self.values.get(expr)
        if found is not None:
            return found
        if isinstance(expr, Call) and self._is_rewritable(expr):
            found = self._rewrite(expr)
        elif isinstance(expr, Tuple):
            found = [value for part in expr.fields for value in self.tensors(part)]
        elif isinstance(expr, TupleGetItem) and isinstance(expr.tuple_value, (Call, Tuple)):
            found = self._field(expr)
        else:
            found = self._plain(expr, super().visit(expr))
        if expr in self.wanted:
            for value in found:
                value.learn(IMAGE)
        self.values[expr] = found
        return found

    def _field(self, expr: TupleGetItem) -> list[Value]:
        fields = expr.tuple_value.checked_type.fields
        start = sum(_count(one) for one in fields[: expr.index])
        return self.tensors(expr.tuple_value)[start : start + _count(fields[expr.index])]

    def _plain(self, expr: RelayExpr, made: RelayExpr) -> list[Value]:
        """Tensors of unknown layout."""
        kind = expr.checked_type
        if isinstance(kind, TupleType) and all(isinstance(one, TensorType) for one in kind.fields):
            return [Value.unknown(TupleGetItem(made, position)) for position in range(len(kind.fields))]
        return [Value.unknown(made)]

    @staticmethod
    def _is_rewritable(call: Call) -> bool:
        return (
            isinstance(call.op, Op)
            and call.op.get_attr("FInferCorrectLayout") is not None
            and all(_is_tensors(argument.checked_type) for argument in call.args)
            and _is_tensors(call.checked_type)
        )

    # Rewriting

    def visit(self, expr: RelayExpr) -> Any:
        """The expression with its tensors in the layouts of the program."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if isinstance(expr, Call) and self._entered and self._is_rewritable(expr):
            made = self._in_program_layout(expr, self.tensors(expr))
            self.memo_map[expr] = made
            return made
        return super().visit(expr)

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        return tup.map_children(self.visit)

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        if isinstance(op.tuple_value, Call) and self._is_rewritable(op.tuple_value):
            return self._in_program_layout(op, self.tensors(op))
        return op.map_children(self.visit)

    def visit_function(self, fn: Function) -> RelayExpr:
        if fn.is_primitive:
            return fn
        body = self.visit(fn.body)
        return fn if body is fn.body else fn.replace(body=body)

    def _in_program_layout(self, expr: RelayExpr, values: Sequence[Value]) -> RelayExpr:
        forms = [value.form(value.home) for value in values]
        if isinstance(expr.checked_type, TensorType):
            return forms[0]
        if isinstance(expr, Call):
            whole = _whole_tuple(forms)
            if whole is not None:
                return whole
        return Tuple(forms)

    def _rewrite(self, call: Call) -> list[Value]:
        """The results of a call, in the layouts that its operator, or the one in its place, gives."""
        assert isinstance(call.op, Op)
        arguments = [value for argument in call.args for value in self.tensors(argument)]
        types = [kind for argument in call.args for kind in _flat(argument.checked_type)]
        rule = call.op.get_attr("FInferCorrectLayout")
        program: Layouts = rule(call.attrs, [None] * len(types), [value.home for value in arguments], types)
        arguments = [value.seen_as(layout) for value, layout in zip(arguments, program.inputs, strict=True)]
        with span_scope(call.span):
            replaced = self._replacement(call, arguments, types)
            if replaced is not None:
                return self._call(call, *replaced, program, types)
            return self._call(call, call.op, call.attrs, arguments, program, types)

    def _replacement(
        self, call: Call, arguments: list[Value], types: list[Any]
    ) -> tuple[Op, Any, list[Value]] | None:
        """The operator, attributes and arguments of the call that the pass puts in this one's place."""
        if len(arguments) != len(call.args):
            return None
        given = [self.visit(argument) for argument in call.args]
        made = self.replace(call, given, types)
        if made is None or not isinstance(made, Call) or not isinstance(made.op, Op):
            return None
        new_arguments = []
        for position, argument in enumerate(made.args):
            same = next((value for value, old in zip(arguments, given, strict=True) if old is argument), None)
            if same is None:
                # A rearranged argument (a reshaped weight) has the layout that the old one had.
                same = Value.unknown(argument)
                same.learn(arguments[position].home if position < len(arguments) else None)
            new_arguments.append(same)
        return made.op, made.attrs, new_arguments

    def _call(
        self, call: Call, op: Op, attrs: Any, arguments: list[Value], program: Layouts, types: list[Any]
    ) -> list[Value]:
        """Make the call on arguments in the layouts that its rule requires."""
        rule = op.get_attr("FInferCorrectLayout")
        homes = [value.home for value in arguments]
        chosen: Layouts = rule(attrs, self._offered(call, op, attrs, arguments), homes, types)
        if not _fits(chosen, program, arguments):
            op, attrs, chosen = _as_before(call, program)
        forms = [value.form(layout) for value, layout in zip(arguments, chosen.inputs, strict=True)]
        unchanged = op is call.op and all(
            form is self.memo_map.get(argument) for form, argument in zip(forms, call.args, strict=False)
        )
        if unchanged and len(forms) == len(call.args) and chosen.attrs == call.attrs:
            made: RelayExpr = call.replace(args=tuple(forms)) if forms != list(call.args) else call
        else:
            new_attrs = chosen.attrs if chosen.attrs is not None else attrs
            made = call.replace(op=op, args=_regrouped(call, forms), attrs=new_attrs)
        return _results(call, made, program, chosen)

    def _offered(self, call: Call, op: Op, attrs: Any, arguments: list[Value]) -> list[MaybeLayout]:
        """The layouts that arguments could have: the newest, or the one that is wanted for this call. An operator on
        images of one layout continues in it, next to their producer: only its result is transformed then."""
        newest = [value.newest for value in arguments]
        if attrs != call.attrs:
            # The pass has chosen a layout: arguments that are as the program has them do not speak against it.
            return [None if value.newest == value.home else value.newest for value in arguments]
        wanted = self.wanted.get(call)
        if wanted is None or op is not call.op:
            return newest
        images = [
            value.home == IMAGE and not isinstance(argument, Constant)
            for value, argument in zip(arguments, _tensors(call), strict=True)
        ]
        changed = [value.newest for value, image in zip(arguments, images, strict=True) if image]
        if changed and changed[0] != IMAGE and all(layout == changed[0] for layout in changed):
            return newest
        return [wanted if image else layout for layout, image in zip(newest, images, strict=True)]


def _tensors(call: Call) -> list[RelayExpr]:
    """The tensors of a call's arguments: the fields of literal tuples."""
    found: list[RelayExpr] = []
    for argument in call.args:
        fields = (
            argument.fields if isinstance(argument, Tuple) else [argument] * _count(argument.checked_type)
        )
        found += fields
    return found


def _as_before(call: Call, program: Layouts) -> tuple[Op, Any, Layouts]:
    assert isinstance(call.op, Op)
    return call.op, call.attrs, Layouts(program.inputs, program.outputs, call.attrs)


def _fits(chosen: Layouts, program: Layouts, arguments: Sequence[Value]) -> bool:
    """A layout can be changed only of tensors whose layout in the program is known, results included."""
    if any(
        wanted is not None and value.home is None
        for wanted, value in zip(chosen.inputs, arguments, strict=True)
    ):
        return False
    return all(
        home is not None or new is None or new == home
        for new, home in zip(chosen.outputs, program.outputs, strict=True)
    )


def _results(call: Call, made: RelayExpr, program: Layouts, chosen: Layouts) -> list[Value]:
    if isinstance(call.checked_type, TensorType):
        parts: list[RelayExpr] = [made]
    else:
        parts = [TupleGetItem(made, position) for position in range(len(call.checked_type.fields))]
    homes = list(program.outputs) + [None] * (len(parts) - len(program.outputs))
    news = list(chosen.outputs) + [None] * (len(parts) - len(chosen.outputs))
    found = []
    for part, home, new in zip(parts, homes, news, strict=True):
        if home is None or new is None:
            found.append(Value.unknown(part))
        else:
            found.append(Value(home, new, {new.name: part}))
    return found


def _regrouped(call: Call, forms: list[RelayExpr]) -> tuple[RelayExpr, ...]:
    """Flattened tensors as arguments: those of a tuple argument become a tuple again."""
    counts = [_count(argument.checked_type) for argument in call.args]
    if all(isinstance(argument.checked_type, TensorType) for argument in call.args):
        return tuple(forms)
    made: list[RelayExpr] = []
    at = 0
    for argument, count in zip(call.args, counts, strict=True):
        part = forms[at : at + count]
        at += count
        made.append(part[0] if isinstance(argument.checked_type, TensorType) else Tuple(part))
    return tuple(made)


def _whole_tuple(forms: Sequence[RelayExpr]) -> RelayExpr | None:
    """The call whose fields, all of them in order, these are."""
    first = forms[0] if forms else None
    if not isinstance(first, TupleGetItem):
        return None
    source = first.tuple_value
    in_order = all(
        isinstance(form, TupleGetItem) and form.tuple_value is source and form.index == position
        for position, form in enumerate(forms)
    )
    return source if in_order else None


def _is_tensors(kind: Any) -> bool:
    if isinstance(kind, TupleType):
        return all(isinstance(one, TensorType) for one in kind.fields)
    return isinstance(kind, TensorType)


def _flat(kind: Any) -> list[Any]:
    return list(kind.fields) if isinstance(kind, TupleType) else [kind]


def _count(kind: Any) -> int:
    return len(_flat(kind))


def rewrite_layouts(
    function: Function, replace: Replace, wanted: Mapping[RelayExpr, Layout] | None = None
) -> Function:
    """The function with its calls in the layouts that ``replace`` requests. ``wanted`` are the layouts in which images
    (tensors of layout NCHW in the program) should meet where they could have several."""
    made = LayoutRewriter(replace, wanted or {}).visit(function)
    assert isinstance(made, Function)
    return made
