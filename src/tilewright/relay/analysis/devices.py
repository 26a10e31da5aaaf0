"""The device of each value of a program.

Every tensor value has one device, every function one per parameter and one for its result. Devices follow from
annotations and from use:

- an operator's arguments and result are on the same device, but for sizes and shapes, which are on the CPU; so are the
  whole and the parts of a tuple, a data value or a reference, the branches of a conditional with its result and its
  condition, and a variable with its value;
- ``device_copy`` copies its argument from one device to another;
- ``on_device`` says where its argument is computed. With ``is_fixed`` its result is there too, otherwise the result may
  be wherever it is used;
- the attributes "param_device_types" and "result_device_type" say where a function expects and leaves values.

A value that nothing constrains is on the default device. Two devices for one value are an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import FuncType, Type
from tilewright.relay.adt import Match, bound_variables
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
)
from tilewright.relay.expr_functor import ExprVisitor
from tilewright.relay.function import Function
from tilewright.runtime.device import Device
from tilewright.support.errors import TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.support.union_find import UnionFind

_HOST, _SAME = "host", "same"
PLACES_OF_ARGUMENTS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "memory.alloc_storage": ((_HOST, _HOST), "attribute"),
    "memory.alloc_tensor": ((_SAME, _HOST, _HOST), _SAME),
    "vm.shape_of": (("anywhere",), _HOST),
    "vm.shape_func": (("anywhere", _HOST, _HOST), _HOST),
    "vm.reshape_tensor": ((_SAME, _HOST), _SAME),
}
"""The operators whose arguments are not all where their result is: sizes and shapes are on the CPU."""
_CPU: Final = 1


class DeviceConflict(TilewrightError):
    """A value would have to be on two devices."""


@dataclass(eq=False)
class _Place(UnionFind):
    """The device of values that must be on the same device; the representative has it."""

    device: int | None = None


@dataclass(eq=False)
class _FunctionPlaces:
    """The places of a function's parameters and of its result."""

    params: list[Any]
    result: Any


_Places = _Place | _FunctionPlaces


def _places_for(kind: Type) -> _Places:
    if isinstance(kind, FuncType):
        return _FunctionPlaces([_places_for(one) for one in kind.arg_types], _places_for(kind.ret_type))
    return _Place()


def _all(places: _Places) -> Iterator[_Place]:
    if isinstance(places, _Place):
        yield places
    else:
        for one in (*places.params, places.result):
            yield from _all(one)


def _name(device: int) -> str:
    return str(Device(device, 0)).partition("(")[0]


def _join(first: _Places, second: _Places, where: RelayExpr) -> None:
    """Puts both on the same device."""
    if isinstance(first, _FunctionPlaces) and isinstance(second, _FunctionPlaces):
        for one, other in zip((*first.params, first.result), (*second.params, second.result), strict=True):
            _join(one, other, where)
        return
    if not isinstance(first, _Place) or not isinstance(second, _Place):
        # A function within a tuple or a data value: its parameters and results are on the same device as the whole.
        everything = [*_all(first), *_all(second)]
        for other in everything[1:]:
            _join(everything[0], other, where)
        return
    one, other = first.find(), second.find()
    if one is other:
        return
    if one.device is not None and other.device is not None and one.device != other.device:
        raise DeviceConflict(
            f"a value would have to be on {_name(one.device)} and on {_name(other.device)}; put a device_copy, or an "
            "on_device without is_fixed, between",
            span=where.span,
        )
    other.parent = one
    one.device = other.device if one.device is None else one.device


def _fix(places: _Places, device: int, where: RelayExpr) -> None:
    """Puts these on a device."""
    for place in _all(places):
        _join(place, _Place(device=device), where)


class DevicePlan(ExprVisitor):
    """The devices of the expressions of a typed module."""

    def __init__(self, mod: IRModule, default: int) -> None:
        super().__init__()
        self.mod = mod
        self.default = default
        self._places: dict[RelayExpr, _Places] = {}
        self._globals: dict[str, _Places] = {}
        with recursion_room():
            for name, function in mod.functions.items():
                if isinstance(function, Function):
                    self.visit(function)
                    _join(self._global(name), self.places(function), function)

    # Answers

    def device_of(self, expr: RelayExpr) -> int:
        """The device of a value; of a function, that of its result."""
        places = self.places(expr)
        return self._device(places if isinstance(places, _Place) else _result(places))

    def param_devices(self, function: Function) -> list[int]:
        """Where a function expects its arguments; functions among them count by their results."""
        return [self.device_of(parameter) for parameter in function.params]

    def result_device(self, function: Function) -> int:
        """Where a function leaves its result."""
        return self.device_of(function.body)

    def _device(self, place: _Place) -> int:
        found = place.find().device
        return self.default if found is None else found

    # Rules

    def places(self, expr: RelayExpr) -> _Places:
        """The places of an expression."""
        if expr not in self._places:
            self._places[expr] = _places_for(expr.checked_type)
        return self._places[expr]

    def _together(self, where: RelayExpr, parts: Sequence[RelayExpr]) -> None:
        own = self.places(where)
        for part in parts:
            self.visit(part)
            _join(own, self.places(part), where)

    def _global(self, name: GlobalVar) -> _Places:
        if name.name_hint not in self._globals:
            function = self.mod[name.name_hint]
            places = _places_for(function.checked_type)
            self._globals[name.name_hint] = places
            if not isinstance(function, Function):
                everything = list(_all(places))
                for other in everything[1:]:
                    _join(everything[0], other, name)
        return self._globals[name.name_hint]

    def visit_global_var(self, gv: GlobalVar) -> None:
        self._places[gv] = self._global(gv)

    def visit_constant(self, const: Constant) -> None:
        """A constant is where it is used."""

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, Op):
            self._operator(call, call.op)
            return
        if isinstance(call.op, Constructor):
            self._together(call, call.args)
            return
        self.visit(call.op)
        for argument in call.args:
            self.visit(argument)
        callee = self.places(call.op)
        given = _FunctionPlaces([self.places(one) for one in call.args], self.places(call))
        _join(callee, given, call)

    def _operator(self, call: Call, op: Op) -> None:
        if op.name in PLACES_OF_ARGUMENTS:
            self._sized(call, op)
            return
        if op.name not in ("on_device", "device_copy"):
            self._together(call, call.args)
            return
        argument = call.args[0]
        attrs: Any = call.attrs
        self.visit(argument)
        if op.name == "device_copy":
            _fix(self.places(argument), attrs.src_dev_type, call)
            _fix(self.places(call), attrs.dst_dev_type, call)
            return
        places = self.places(argument)
        # Of a function, it is the result that is on the device: the parameters follow from the body.
        _fix(places if isinstance(places, _Place) else _result(places), attrs.device_type, call)
        if isinstance(places, _FunctionPlaces):
            _join(places, self.places(call), call)
        elif attrs.is_fixed:
            _fix(self.places(call), attrs.device_type, call)

    def _sized(self, call: Call, op: Op) -> None:
        """An operator on sizes and shapes."""
        of_arguments, of_result = PLACES_OF_ARGUMENTS[op.name]
        own = self.places(call)
        if of_result != _SAME:
            attrs: Any = call.attrs
            _fix(own, _CPU if of_result == _HOST else int(attrs.device_type), call)
        for argument, where in zip(call.args, of_arguments, strict=True):
            self.visit(argument)
            if where == _HOST:
                _fix(self.places(argument), _CPU, call)
            elif where == _SAME:
                _join(own, self.places(argument), call)

    def visit_tuple(self, tup: Tuple) -> None:
        self._together(tup, tup.fields)

    def visit_tuple_getitem(self, t: TupleGetItem) -> None:
        self._together(t, (t.tuple_value,))

    def visit_if(self, i: If) -> None:
        self.visit(i.cond)
        self._together(i, (i.true_branch, i.false_branch))
        for place in _all(self.places(i)):
            _join(place, self.places(i.cond), i)

    def visit_match(self, m: Match) -> None:
        self.visit(m.data)
        for clause in m.clauses:
            for variable in bound_variables(clause.lhs):
                _join(self.places(variable), self.places(m.data), m)
        self._together(m, [clause.rhs for clause in m.clauses])
        for place in _all(self.places(m)):
            _join(place, self.places(m.data), m)

    def visit_ref_create(self, r: RefCreate) -> None:
        self._together(r, (r.value,))

    def visit_ref_read(self, r: RefRead) -> None:
        self._together(r, (r.ref,))

    def visit_ref_write(self, r: RefWrite) -> None:
        self._together(r, (r.ref, r.value))

    def visit_let(self, let: Let) -> None:
        chain: list[Let] = []
        current: RelayExpr = let
        while isinstance(current, Let):
            chain.append(current)
            self.visit(current.value)
            _join(self.places(current.var), self.places(current.value), current)
            current = current.body
        self.visit(current)
        for inner in chain:
            self.memo_map[inner] = None
            self._places[inner] = self.places(current)

    def visit_function(self, fn: Function) -> None:
        self.visit(fn.body)
        params = [self.places(parameter) for parameter in fn.params]
        result = self.places(fn.body)
        _join(self.places(fn), _FunctionPlaces(params, result), fn)
        given = fn.attrs.get("param_device_types")
        if given is not None:
            # Of a function that is taken or given, the device is that of its result.
            for place, device in zip(params, given, strict=True):
                _fix(place if isinstance(place, _Place) else _result(place), int(device), fn)
            last = result if isinstance(result, _Place) else _result(result)
            _fix(last, int(fn.attrs["result_device_type"]), fn)


def _result(places: _FunctionPlaces) -> _Place:
    """The place of a function's result; of what that gives, where it is a function."""
    result = places.result
    while isinstance(result, _FunctionPlaces):
        result = result.result
    assert isinstance(result, _Place)
    return result
