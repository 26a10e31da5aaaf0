"""Custom data types: number formats that the compiler does not know, computed by calls to a library.

A type is registered under a name and a type code, and written ``custom[name]32``. For each operation on it, a function
is registered that turns the expression into a call on unsigned integers of the same size. The pass that lowers custom
types looks these up with ``find_lower_func`` and ``find_min_func``.

This layer is below the expressions, so it creates them through a builder: the expression layer installs itself with
``install_builder``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tilewright.support.dtype import DataType
from tilewright.support.errors import InternalError, TargetError

FIRST_CUSTOM_CODE: Final = 129
_LAST_CUSTOM_CODE: Final = 255


class ExpressionBuilder(Protocol):
    """The interface for creating calls: the expression layer's functions of the same names."""

    def call_pure_extern(self, dtype: str, func_name: str, *args: Any) -> Any:
        """A call of an external function that has no effect."""

    def call_intrin(self, dtype: str, func_name: str, *args: Any) -> Any:
        """A call of an intrinsic."""


_code_of_name: dict[str, int] = {}
_name_of_code: dict[int, str] = {}
_lower_funcs: dict[tuple[str, ...], Callable[..., Any]] = {}
_min_funcs: dict[str, Callable[[int], Any]] = {}
_builder: ExpressionBuilder | None = None


def install_builder(builder: ExpressionBuilder) -> None:
    """Let lowering functions make their calls with ``builder``."""
    global _builder
    _builder = builder


def register(type_name: str, type_code: int) -> None:
    """Make a custom type known. Name and code may each be registered once, or again with the same partner."""
    if not type_name.isidentifier():
        raise TargetError(f"{type_name!r} cannot name a custom data type: it must be an identifier")
    if not FIRST_CUSTOM_CODE <= type_code <= _LAST_CUSTOM_CODE:
        raise TargetError(
            f"type code {type_code} cannot represent {type_name!r}: "
            f"custom types have codes from {FIRST_CUSTOM_CODE} to {_LAST_CUSTOM_CODE}"
        )
    if _code_of_name.get(type_name, type_code) != type_code:
        raise TargetError(f"custom data type {type_name!r} already has type code {_code_of_name[type_name]}")
    if _name_of_code.get(type_code, type_name) != type_name:
        raise TargetError(f"type code {type_code} already represents {_name_of_code[type_code]!r}")
    _code_of_name[type_name] = type_code
    _name_of_code[type_code] = type_name


def get_type_name(type_code: int) -> str:
    """The name of a registered type code."""
    if type_code not in _name_of_code:
        raise TargetError(f"type code {type_code} is not registered; call tvm.target.datatype.register first")
    return _name_of_code[type_code]


def get_type_code(type_name: str) -> int:
    """The type code of a registered name."""
    if type_name not in _code_of_name:
        raise TargetError(
            f"custom data type {type_name!r} is not registered; call tvm.target.datatype.register first"
        )
    return _code_of_name[type_name]


def get_type_registered(type_code: int) -> bool:
    """True if the code stands for a custom type."""
    return type_code in _name_of_code


def register_op(
    lower_func: Callable[..., Any],
    op_name: str,
    target: str,
    src_type_name: str,
    dest_type_name: str | None = None,
    intrinsic_name: str | None = None,
) -> None:
    """Lower ``op_name`` on a custom type for one kind of target by ``lower_func``, a function of the expression.

    ``op_name`` is the class of the expression (``Add``, ``FloatImm``, ``Cast``…). A ``Cast`` needs the type it
    casts to; a ``Call`` needs the intrinsic's name.
    """
    _lower_funcs[_lower_key(op_name, target, src_type_name, dest_type_name, intrinsic_name)] = lower_func


def find_lower_func(
    op_name: str,
    target: str,
    src_type_name: str,
    dest_type_name: str | None = None,
    intrinsic_name: str | None = None,
) -> Callable[..., Any]:
    """The function that ``register_op`` was given; an error that names what is missing where there is none."""
    key = _lower_key(op_name, target, src_type_name, dest_type_name, intrinsic_name)
    if key not in _lower_funcs:
        raise TargetError(
            f"no lowering is registered for {' '.join(key[1:])} on target {target!r}; "
            "call tvm.target.datatype.register_op"
        )
    return _lower_funcs[key]


def _lower_key(
    op_name: str, target: str, src_type_name: str, dest_type_name: str | None, intrinsic_name: str | None
) -> tuple[str, ...]:
    if op_name == "Cast":
        if dest_type_name is None:
            raise TargetError("lowering a Cast needs dest_type_name, the type that is cast to")
        return target, op_name, src_type_name, dest_type_name
    if op_name == "Call":
        if intrinsic_name is None:
            raise TargetError("lowering a Call needs intrinsic_name, the intrinsic that is called")
        return target, op_name, intrinsic_name, src_type_name
    return target, op_name, src_type_name


def register_min_func(func: Callable[[int], Any], type_name: str) -> None:
    """Let ``func(bits)`` give the least value of a custom type."""
    get_type_code(type_name)
    _min_funcs[type_name] = func


def find_min_func(type_name: str) -> Callable[[int], Any]:
    """The function that ``register_min_func`` was given."""
    if type_name not in _min_funcs:
        raise TargetError(
            f"the least value of {type_name!r} is not known; call tvm.target.datatype.register_min_func"
        )
    return _min_funcs[type_name]


def create_lower_func(extern_func_map: Mapping[Any, str]) -> Callable[[Any], Any]:
    """A lowering function that calls the external function for the operands' size.

    The map goes from bits to a function's name, for a cast from (bits from, bits to).
    """

    def lower(op: Any) -> Any:
        node = type(op).__name__
        bits = DataType(op.dtype).bits
        key: Any = (DataType(op.value.dtype).bits, bits) if node == "Cast" else bits
        if key not in extern_func_map:
            raise TargetError(f"{node} of {op.dtype} has no external function for {key} bits")
        if node in ("Cast", "FloatImm"):
            arguments = [op.value]
        elif node == "Call":
            arguments = list(op.args)
        else:
            arguments = [op.a, op.b]
        return _the_builder().call_pure_extern(storage_type(op.dtype), extern_func_map[key], *arguments)

    return lower


def create_min_lower_func(extern_func_map: Mapping[int, str], type_name: str) -> Callable[[int], Any]:
    """A function from bits to a call that gives the least value of the type at that size."""

    def lower(num_bits: int) -> Any:
        if num_bits not in extern_func_map:
            raise TargetError(
                f"the least value of {type_name!r} has no external function for {num_bits} bits"
            )
        return _the_builder().call_pure_extern(f"custom[{type_name}]{num_bits}", extern_func_map[num_bits])

    return lower


def lower_ite(ite_op: Any) -> Any:
    """The same choice between two values, on their storage type."""
    return _the_builder().call_intrin(storage_type(ite_op.dtype), "tir.if_then_else", *ite_op.args)


def lower_call_pure_extern(op: Any) -> Any:
    """The same external call, giving the storage type."""
    return _the_builder().call_intrin(storage_type(op.dtype), "tir.call_pure_extern", *op.args)


def storage_type(dtype: str) -> str:
    """The unsigned integer that holds a custom type; any other type as it is."""
    kind = DataType(dtype)
    if kind.type_code < FIRST_CUSTOM_CODE:
        return str(kind)
    return f"uint{kind.bits}" if kind.lanes == 1 else f"uint{kind.bits}x{kind.lanes}"


def _the_builder() -> ExpressionBuilder:
    if _builder is None:
        raise InternalError("custom data types are lowered before the expression layer installed its builder")
    return _builder
