"""``te.hybrid.build``: a schedule as the text of a hybrid script, which runs in Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from tilewright.support.errors import ParseError
from tilewright.te.hybrid import language
from tilewright.te.hybrid.printer import hybrid_source
from tilewright.te.hybrid.script import HybridFunction
from tilewright.te.schedule.bounds import infer_bound
from tilewright.te.schedule.lowering import schedule_ops
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Tensor
from tilewright.tir.script.source import Source, source_of_text

_LANGUAGE = (
    *(ast.FunctionDef, ast.arguments, ast.arg, ast.For, ast.If, ast.Assert, ast.Assign, ast.AugAssign),
    *(ast.Expr, ast.Pass, ast.Return, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp),
    *(ast.Compare, ast.BoolOp, ast.IfExp, ast.Attribute, ast.Subscript, ast.Call, ast.keyword),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context),
)
_ATTRIBUTES = ("shape", "dtype", "ndim")


def _checked_function(source: Source) -> ast.FunctionDef:
    """The one function of a text that uses nothing but the words of the language: no import, no attribute but those
    of tensors, no call of anything else. Running it cannot reach outside its arguments."""
    body = source.parse().body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise ParseError(f"{source.filename}: a hybrid module is the text of one function")
    function = body[0]
    for node in ast.walk(function):
        if not isinstance(node, _LANGUAGE):
            raise source.error(node, f"{type(node).__name__} cannot be used in a hybrid module")
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            raise source.error(node, f"{node.attr} cannot be used in a hybrid module")
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called not in language.EMULATED:
                raise source.error(node, "a hybrid module can only call built-in functions of hybrid script")
    if function.decorator_list or function.args.defaults or function.returns is not None:
        raise source.error(function, "the function of a hybrid module is plain: no decorators, no defaults")
    return function


class HybridModule:
    """The text of one hybrid script. It is called like a script, with arrays or with tensors."""

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.name = name or ""
        self._source = ""
        self._function: HybridFunction | None = None
        if src is not None:
            self._set(src, name)

    def _set(self, text: str, name: str | None) -> None:
        source = source_of_text(text, f"<hybrid module {name or ''}>")
        node = _checked_function(source)
        if name is not None and node.name != name:
            raise ParseError(f"the text defines {node.name}, not {name}")
        try:
            code = compile(ast.Module([node], []), source.filename, "exec")
        except RecursionError:
            raise ParseError(f"{source.filename}: the script is nested too deeply to be run") from None
        inner = next(constant for constant in code.co_consts if hasattr(constant, "co_code"))
        # Made from the code object: the text is not executed to define it, and sees no builtins.
        function = FunctionType(inner, {"__builtins__": {}}, node.name)
        self.name = node.name
        self._source = text
        self._function = HybridFunction(function, (source, node))

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            raise ParseError("this hybrid module is empty: load a file first")
        return self._function(*args)

    def get_source(self) -> str:
        """The text."""
        return self._source

    def save(self, path: str) -> None:
        """Write the text to a file; ``.py`` is added to a name without it."""
        target = Path(path if str(path).endswith(".py") else f"{path}.py")
        partial = target.with_name(f".{target.name}.partial")
        partial.write_text(self._source, encoding="utf-8")
        partial.replace(target)

    def load(self, path: str) -> None:
        """Read the text of a file that ``save`` wrote."""
        self._set(Path(path).read_text(encoding="utf-8"), None)


def build(
    sch: Schedule, inputs: Sequence[Any], outputs: Sequence[Tensor], name: str = "hybrid_func"
) -> HybridModule:
    """The schedule's computation as the text of a hybrid script: ``inputs`` are its parameters, ``outputs`` what it
    returns."""
    normalized = sch.normalize()
    body = schedule_ops(normalized, infer_bound(normalized))
    results = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    return HybridModule(hybrid_source(body, list(inputs), results, name), name)
