"""Lexical elements that the printer and the parser of the text form share: names, numbers, attribute values, meta
references."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import FloatImm, IntImm, StringImm
from tilewright.ir.serialize import SerializationError, kind_name, save_json
from tilewright.runtime.ndarray import NDArray
from tilewright.support.dtype import FLOAT32, INT32

NAME_PATTERN: Final = r"[A-Za-z_]\w*(?:(?:\.\w+)*\.[A-Za-z_]\w*)?"
"""A name that needs no quotes. A part after a dot may be a number if letters follow: ``%layer1.0.weight`` is a name,
and ``%x.0`` the first field of ``%x``."""

WORD_PATTERN: Final = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
"""The name of an operator, a type, a constructor or an attribute."""

_NAME = re.compile(NAME_PATTERN, re.ASCII)
_WORD = re.compile(WORD_PATTERN, re.ASCII)

METADATA_HEADER: Final = "#[metadata]"


def is_identifier(name: str) -> bool:
    """True for a name without dots that the text form can write as it is."""
    return name.isidentifier() and name.isascii()


def name_text(name: str) -> str:
    """A name as written after ``%`` or ``@``; in quotes if it is not a plain identifier."""
    return name if _NAME.fullmatch(name) else json.dumps(name)


def word_text(word: str) -> str:
    """The name of an attribute; in quotes where it is not a plain one."""
    return word if _WORD.fullmatch(word) else json.dumps(word)


class Names:
    """Names that are given once: a second owner of a name gets a number behind it."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self.taken: set[str] = set(reserved)
        self.next_number: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """The name itself if it is free, else with the first number that makes it so."""
        name = wanted
        number = self.next_number.get(wanted, 0)
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.next_number[wanted] = number
        self.taken.add(name)
        return name


def _float_digits(value: Any) -> str:
    """The fewest digits that give the value back, without a needless fraction."""
    return str(value).removesuffix(".0")


_SUFFIXES = {
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "float64": "f64",
    "float32": "f",
    "int32": "",
}
"""The suffix of a number, by its type."""


def scalar_text(data: NDArray) -> str | None:
    """A constant without dimensions as a number; None where the text form has no number of its type."""
    dtype = data.dtype
    suffix = _SUFFIXES.get(dtype)
    if data.ndim or (suffix is None and not dtype.is_bool):
        return None
    value = data.numpy()[()]
    if suffix is None:
        return str(bool(value))
    return (_float_digits(value) if dtype.is_float else str(int(value))) + suffix


class MetaTable:
    """Values without a text form, by class; the text refers to them as ``meta[class][number]``."""

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {}
        self._references: dict[int, str] = {}

    def reference(self, value: Any) -> str:
        """The words that stand for a value; the same for the same object."""
        found = self._references.get(id(value))
        if found is None:
            kind = kind_name(type(value))
            same_kind = self.values.setdefault(kind, [])
            same_kind.append(value)
            found = self._references[id(value)] = f"meta[{kind}][{len(same_kind) - 1}]"
        return found

    def section(self) -> str:
        """The values as JSON. One that cannot be written (a device, a function of Python) is null there."""
        try:
            return save_json(self.values, with_types=False)
        except SerializationError:
            kept = {
                kind: [value if _is_writable(value) else None for value in values]
                for kind, values in self.values.items()
            }
            return save_json(kept, with_types=False)


def _is_writable(value: Any) -> bool:
    try:
        save_json(value, with_types=False)
    except SerializationError:
        return False
    return True


def value_text(value: Any, meta: MetaTable) -> str:
    """An attribute's value: a number, a string, a list, a mapping, or a reference to the meta data."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return f"{_float_digits(float(value))}f"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([value_text(item, meta) for item in value])}]"
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        pairs = [f"{json.dumps(str(key))}: {value_text(item, meta)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return _constant_text(value, meta)
    if isinstance(value, UnknownDimension):
        return "?"
    return meta.reference(value)


def _constant_text(value: IntImm | FloatImm | StringImm, meta: MetaTable) -> str:
    """A loop-level constant as the number or string that it stands for, where that tells its type."""
    if isinstance(value, StringImm) or value.dtype in (INT32, FLOAT32):
        return value_text(value.value, meta)
    return str(bool(value.value)) if value.dtype.is_bool else meta.reference(value)
