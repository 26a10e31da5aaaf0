"""``T``: the names of the script language.

Decorators and the types of parameters are real objects, because Python evaluates them. Everything else is
read by the parser and has no meaning outside a script.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewright.ir.type import PrimType
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.script import parser_calls
from tilewright.tir.script.parser import parse_function

IS_SCRIPT_NAMESPACE = True
"""How the parser knows this module, whatever name it was imported under."""


def prim_func(function: Callable[..., Any]) -> PrimFunc:
    """Decorator: the loop-level function that the Python function describes."""
    if not callable(function):
        raise TilewrightError(f"T.prim_func decorates a function, not {function!r}")
    return parse_function(function)


def module_attrs(attributes: dict[str, Any]) -> None:
    """Attributes of the module whose class is being defined."""
    sys._getframe(1).f_locals["__module_attrs__"] = dict(attributes)


class _TypeMaker:
    """A type with arguments, in brackets or in parentheses."""

    def __init__(self, maker: parser_calls.TypeMaker) -> None:
        self._maker = maker

    def __getitem__(self, arguments: Any) -> Any:
        return self(*arguments) if isinstance(arguments, tuple) else self(arguments)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._maker.make(*[_plain_type(argument) for argument in arguments], **options)


class _ScriptName:
    """A name that only the parser understands; as the type of a parameter, a data type."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TilewrightError(
            f"T.{self.name} has a meaning only inside a function decorated with T.prim_func"
        )

    def __getattr__(self, name: str) -> _ScriptName:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ScriptName(f"{self.name}.{name}")

    def __repr__(self) -> str:
        return f"T.{self.name}"


def _plain_type(argument: Any) -> Any:
    if isinstance(argument, _ScriptName):
        return PrimType(str(parser_calls.data_type(argument.name)))
    return argument


def __getattr__(name: str) -> Any:
    if name in parser_calls.TYPE_MAKERS:
        return _TypeMaker(parser_calls.TYPE_MAKERS[name])
    if parser_calls.is_known(name) or parser_calls.data_type(name) is not None:
        return _ScriptName(name)
    raise AttributeError(parser_calls.unknown(name))
