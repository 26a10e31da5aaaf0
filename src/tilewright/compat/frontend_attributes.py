"""What TVM's frontends use to translate operators by tables: attributes as text, renamed attributes, named values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay import op
from tilewright.relay.expr import Var, const, var
from tilewright.support.errors import (
    OpAttributeInvalid,
    OpAttributeRequired,
    OpAttributeUnImplemented,
    OpNotImplemented,
    TilewrightError,
)


class RequiredAttr:
    """The default of an attribute that has none."""


class StrAttrsDict:
    """Attributes whose values are text, as graphs in JSON have them, read as values of a type."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self.attrs = attrs

    def has_attr(self, key: str) -> bool:
        """True if the attribute is there."""
        return key in self.attrs

    def _read(self, key: str, default: Any, convert: Callable[[Any], Any]) -> Any:
        if key in self.attrs:
            return convert(self.attrs[key])
        if isinstance(default, RequiredAttr):
            raise OpAttributeRequired(f"Required attribute {key} not found.")
        return default

    def get_float(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a number."""
        return self._read(key, default, float)

    def get_int(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as an integer; None where it says so."""
        return self._read(key, default, lambda value: None if value == "None" else int(value))

    def get_str(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as it is."""
        return self._read(key, default, lambda value: value)

    def get_int_tuple(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a tuple of integers."""
        return self._read(key, default, lambda value: tuple(_whole(each) for each in _items(value)))

    def get_float_tuple(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a tuple of numbers."""
        return self._read(key, default, lambda value: tuple(float(each) for each in _items(value)))

    def get_tuple_tuple_int(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a tuple of tuples of integers."""

        def convert(value: Any) -> tuple[tuple[int, ...], ...]:
            outer = ast.literal_eval(value)
            if not isinstance(outer, (tuple, list)):
                raise OpAttributeInvalid(f"Expected {key} to be a tuple of tuples, but got {value!r}")
            return tuple(tuple(int(each) for each in inner) for inner in outer)

        return self._read(key, default, convert)

    def get_int_list(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a list of integers."""
        return self._read(key, default, lambda value: [_whole(each) for each in _items(value)])

    def get_bool(self, key: str, default: Any = RequiredAttr()) -> Any:  # noqa: B008
        """The attribute as a truth value."""
        return self._read(key, default, lambda value: str(value).strip().lower() in ("true", "1"))


def _items(value: Any) -> list[Any]:
    """The parts of a tuple in text, or of one that is a tuple already; a single value is a tuple of one."""
    if not isinstance(value, str):
        return list(value) if isinstance(value, (tuple, list)) else [value]
    inner = value.strip().strip("()[]")
    return [each.strip() for each in inner.split(",") if each.strip()]


def _whole(value: Any) -> int | None:
    return None if value == "None" else int(value)


def get_relay_op(op_name: str) -> Callable[..., Any]:
    """The function of ``relay`` that makes calls of an operator: ``nn.relu``, or without its package ``relu``."""
    candidates = (
        [op_name]
        if "." in op_name
        else [f"{place}{op_name}" for place in ("", "nn.", "image.", "vision.", "contrib.")]
    )
    for name in candidates:
        found: Any = op
        for word in name.split("."):
            found = getattr(found, word, None)
        if callable(found):
            made: Callable[..., Any] = found
            return made
    raise OpNotImplemented(f"Unable to map op_name {op_name} to relay")


class ExprTable:
    """Expressions by name, and constants with names of their own."""

    def __init__(self) -> None:
        self.exprs: dict[str, RelayExpr] = {}
        self.params: dict[str, Any] = {}
        self.const_ctr = 1
        self.in_padding = False
        self.paddings: Any = []

    def new_const(self, value: Any, shape: Sequence[int] | None = None, dtype: str = "float32") -> Var:
        """A variable for a constant, whose value is in ``params``."""
        name = f"_param_{self.const_ctr}"
        self.const_ctr += 1
        self.params[name] = const(value, dtype).data if not hasattr(value, "numpy") else value
        made = var(name, shape=shape if shape is not None else self.params[name].shape, dtype=dtype)
        self.exprs[name] = made
        return made

    def get_expr(self, name: str) -> RelayExpr:
        """The expression of a name."""
        return self.exprs[name]

    def set_expr(self, name: str, expr: RelayExpr, force_override: bool = False) -> None:
        """Give an expression a name; one that has it already keeps it, unless the caller overrides."""
        if force_override or name not in self.exprs:
            self.exprs[name] = expr

    def has_expr(self, name: str) -> bool:
        """True if there is an expression of this name."""
        return name in self.exprs

    def set_padding(self, paddings: Any) -> None:
        """Remember paddings for the operator that follows."""
        self.paddings, self.in_padding = paddings, True

    def clear_padding(self) -> None:
        """Forget the paddings."""
        self.in_padding = False


class AttrCvt:
    """Makes the call of an operator with attributes renamed, converted, dropped or added.

    ``transforms`` maps an attribute to its new name, or to a name and a default, or a name, a default and a function;
    a function instead gives the new name and value. ``excludes`` must not be there; ``disables`` and ``ignores`` are
    dropped, the first with a warning's meaning.
    """

    def __init__(
        self,
        op_name: str | Callable[..., str],
        transforms: Mapping[str, Any] | None = None,
        excludes: Sequence[str] | None = None,
        disables: Sequence[str] | None = None,
        ignores: Sequence[str] | None = None,
        extras: Mapping[str, Any] | None = None,
        custom_check: tuple[Callable[..., bool], str] | None = None,
    ) -> None:
        self._op_name, self._transforms = op_name, dict(transforms or {})
        self._excludes, self._dropped = list(excludes or ()), {*(disables or ()), *(ignores or ())}
        self._dropped |= {
            "_output_shapes",
            "_input_shapes",
            "T",
            "use_cudnn_on_gpu",
            "_node_name",
            "is_training",
            "_target_layout",
        }
        self._extras, self._custom_check = dict(extras or {}), custom_check

    def __call__(self, inputs: Sequence[Any], attrs: Mapping[str, Any], *args: Any) -> Any:
        if self._custom_check and not self._custom_check[0](attrs):
            raise OpAttributeInvalid(f"Check failed: {self._custom_check[1]}")
        name = self._op_name if isinstance(self._op_name, str) else self._op_name(attrs)
        made: dict[str, Any] = {}
        for key, value in attrs.items():
            if key in self._excludes:
                raise OpAttributeUnImplemented(f"Attribute {key} in operator {name} is not supported.")
            if key in self._transforms:
                rule = self._transforms[key]
                if callable(rule):
                    made.update([rule(value)])
                else:
                    new_name, _, convert = _rule(rule)
                    made[new_name] = convert(value)
            elif key not in self._dropped:
                made[key] = value
        for key, rule in self._transforms.items():
            if key not in attrs and isinstance(rule, tuple):
                new_name, default, _ = _rule(rule)
                if default is not None:
                    made[new_name] = default
        made.update(self._extras)
        return get_relay_op(name)(*inputs, **made)


def _rule(rule: Any) -> tuple[str, Any, Callable[[Any], Any]]:
    """The new name of an attribute, its default, and the function that converts it."""
    if isinstance(rule, str):
        return rule, None, lambda value: value
    if not isinstance(rule, tuple) or not 1 <= len(rule) <= 3:
        raise TilewrightError(f"an attribute is mapped to a name, a default and a function, not to {rule!r}")
    name, default, convert = (*rule, None, None)[:3]
    return name, default, convert if convert is not None else lambda value: value


class Renamer:
    """Makes the call of an operator with another name."""

    def __init__(self, new_name: str) -> None:
        self._new_name = new_name

    def __call__(self, inputs: Sequence[Any], attrs: Mapping[str, Any], *args: Any) -> Any:
        made = {key: value for key, value in attrs.items() if key != "tvm_custom"}
        return get_relay_op(self._new_name)(*inputs, **made)
