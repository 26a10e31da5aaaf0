"""Attribute classes: the compile-time parameters of operator calls.

    @attributes
    class TransposeAttrs(Attrs):
        axes: tuple[int, ...] | None = None

Fields are read as fields, as items or by ``get_int`` and ``get_int_tuple``. Attributes are normalised when they are
created: loop-level constants become Python numbers, lists become tuples, and integers become floats where the field is
annotated so. Passes can rely on this, and equal attributes have equal representations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, dataclass_transform

from tilewright.ir.attrs import ATTRIBUTE_CLASSES, AttrFieldInfo, Attrs
from tilewright.ir.expr import FloatImm, IntImm, StringImm
from tilewright.support.errors import OpAttributeInvalid


class Integer(int):
    """A number in a list of attributes. Programs for TVM, where it is a loop-level constant, read its ``value``."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The number."""
        return int(self)


def plain(value: Any) -> Any:
    """A value as attributes keep it: numbers, strings and tuples of Python where it is constant."""
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        return tuple([Integer(item) if type(item) is int else item for item in items])
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return bool(value.value) if value.dtype == "bool" else value.value
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def _as_float(value: Any) -> Any:
    """Integers as floats, where that loses nothing."""
    if isinstance(value, tuple):
        return tuple([_as_float(item) for item in value])
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_integer and abs(value) <= 1 << 53 else value


class NoSuchAttribute(KeyError, AttributeError):
    """An operator has no attribute of this name. Programs for TVM, where items are read as fields, expect an
    ``AttributeError``."""


class OpAttrs(Attrs):
    """Base of the attributes of operators."""

    __slots__ = ()
    type_key: ClassVar[str] = ""

    def keys(self) -> list[str]:
        """The names, in order. What a tuner may note for itself counts once it is there, so that ``dict(attrs)`` are
        arguments of the operator."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return [name for name in names if name != _TUNERS_NOTE or getattr(self, name)]

    def __getitem__(self, item: str) -> Any:
        try:
            return getattr(self, item)
        except AttributeError:
            raise NoSuchAttribute(f"{type(self).__name__} has no attribute {item!r}") from None

    def __contains__(self, item: object) -> bool:
        return item in self.keys()

    def get(self, key: str, default: Any = None) -> Any:
        """The attribute's value, or the default where there is no such attribute."""
        return getattr(self, key, default)

    def replace(self, **changes: Any) -> Any:
        """A copy with some attributes changed."""
        return type(self)(**{**dict(self.items()), **changes})

    def changed(self) -> list[tuple[str, Any]]:
        """The attributes that differ from their defaults, and those that are always said: what the text form prints."""
        found = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if (
                field.name in _ALWAYS_SAID
                or value != plain(field.default)
                or isinstance(value, bool) != isinstance(field.default, bool)
            ):
                found.append((field.name, value))
        return found

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], op_name: str) -> Any:
        """Attributes from names and values; an error that names the operator where one is not known."""
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        for name in values:
            if name not in known:
                raise OpAttributeInvalid(
                    f"{op_name} has no attribute {name!r}; it has {', '.join(sorted(known)) or 'none'}"
                )
        try:
            return cls(**values)
        except TypeError as error:
            raise OpAttributeInvalid(f"{op_name}: {error}") from error

    def list_field_info(self) -> list[AttrFieldInfo]:
        """The documentation of each field."""
        return [AttrFieldInfo(field.name, str(field.type), "") for field in fields(self)]  # type: ignore[arg-type]


_TUNERS_NOTE = "auto_scheduler_rewritten_layout"

_ALWAYS_SAID = frozenset({"pool_size"})
"""Attributes that have no default in the text form."""


@dataclass_transform(frozen_default=True)
def attributes(cls: type) -> Any:
    """Make a class of attributes; see the module's text."""

    def normalise(self: Any) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            made = plain(value)
            if field.name in floats:
                made = _as_float(made)
            if made is not value:
                object.__setattr__(self, field.name, made)
        if check is not None:
            check(self)

    floats: set[str] = set()
    check: Callable[[Any], None] | None = cls.__dict__.get("check")
    cls.__post_init__ = normalise  # type: ignore[attr-defined]
    made: Any = dataclass(frozen=True, slots=True, eq=True)(cls)
    made.type_key = f"relay.attrs.{cls.__name__}"
    ATTRIBUTE_CLASSES[made.type_key] = made
    for field in fields(made):
        words = re.findall(r"\w+", str(field.type))
        if "float" in words and "int" not in words:
            floats.add(field.name)
    return made
