"""The public interface, as data: the namespaces, the names of each, and their documentation.

A namespace is a package without an underscore in its path, or one of the modules that programs name
(``contrib.graph_executor``, ``transform`` ...). Its public names are those of ``__all__``, or what a package imports
from Tilewright's own modules and what a module defines, except for names with an underscore. The documentation of a
constant or a field is the string below it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import tilewright

PACKAGE = Path(tilewright.__file__).resolve().parent
TOP_MODULES = ("transform", "instrument", "parser", "error", "as_tvm")
OTHER_MODULES = (
    "relay.backend.executor_factory",
    "relay.backend.te_compiler",
    "relay.build_module",
    "runtime.graph_executor",
    "runtime.ndarray",
    "runtime.profiling",
    "runtime.vm",
)
# Packages that hold the parts of one implementation: nothing in them is named by a program.
INNER = (
    "arith.rewrite",
    "codegen.llvm.math",
    "relay.frontend.onnx.ops",
    "relay.transform.lib",
    "tir.script",
    "tir.transform.lib",
    "schedule.cpu",
)


@dataclass(frozen=True)
class Member:
    """A method, a property or a field of a class."""

    name: str
    kind: str
    signature: str
    text: str
    home: str
    """The module that defines it."""
    line: int


@dataclass(frozen=True)
class Name:
    """A public name of a namespace, and what it stands for."""

    namespace: str
    name: str
    kind: str
    """``class``, ``function`` or ``data``."""
    value: Any
    home: str
    """The module that defines it."""
    signature: str
    text: str
    line: int
    bases: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    inherited: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def path(self) -> str:
        """The whole name, as a program writes it."""
        return f"{self.namespace}.{self.name}"


@dataclass
class Namespace:
    """A module of the public interface."""

    path: str
    text: str
    names: list[Name] = field(default_factory=list)


@functools.cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _documented_assignments(body: list[ast.stmt]) -> dict[str, tuple[str, str, int]]:
    """Name to (annotation, text, line) of the assignments of a module or of a class."""
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = inspect.cleandoc(str(after.value.value))
        annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        for name in _assigned(node):
            found[name] = (annotation, text, node.lineno)
    return found


def _exported(module: ModuleType) -> Iterator[str]:
    """The public names of a module; see the head of this file."""
    if hasattr(module, "__all__"):
        yield from module.__all__
        return
    names = []
    is_package = hasattr(module, "__path__")
    for node in _tree(str(module.__file__)).body:
        if isinstance(node, ast.ImportFrom) and is_package and (node.module or "").startswith("tilewright"):
            names += [alias.asname or alias.name for alias in node.names if alias.name != "*"]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names += _assigned(node)
    if hasattr(module, "__getattr__") or any(
        isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        for node in _tree(str(module.__file__)).body
    ):
        # What is loaded on first use, or imported by a star.
        names += [name for name in dir(module) if _is_ours(getattr(module, name))]
    yield from dict.fromkeys(name for name in names if not name.startswith("_"))


def _is_ours(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.split(".")[0] == "tilewright"


def _unwrapped(value: Any) -> Any:
    return inspect.unwrap(value) if callable(value) else value


def _line(value: Any) -> int:
    value = _unwrapped(value)
    if inspect.isclass(value):
        for node in ast.walk(_tree(inspect.getfile(value))):
            if isinstance(node, ast.ClassDef) and node.name == value.__name__:
                return node.lineno
    code = getattr(value, "__code__", None)
    return code.co_firstlineno if code else 1


def signature_of(value: Any) -> str:
    """Parameters and result as the source writes them; defaults without addresses."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"<(?:function|class|built-in function) '?([\w.]+)[^>]*>", r"\1", text)
    text = re.sub(r"<([\w.]+) object at 0x[0-9a-f]+>", lambda match: match[1].split(".")[-1], text)
    # Annotations that are text appear in quotes; they are types all the same.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def _member(owner: type, name: str, raw: Any) -> Member | None:
    value = raw.__func__ if isinstance(raw, staticmethod | classmethod) else raw
    if isinstance(raw, property | functools.cached_property):
        getter = raw.fget if isinstance(raw, property) else raw.func
        returned = getattr(getter, "__annotations__", {}).get("return", "")
        kind, signature = "property", f": {returned}" if returned else ""
        return Member(name, kind, signature, inspect.getdoc(raw) or "", _home(getter, owner), _line(getter))
    if inspect.isroutine(value) or (callable(value) and not inspect.isclass(value)):
        kind = {staticmethod: "static method", classmethod: "class method"}.get(type(raw), "method")
        text = inspect.getdoc(value) or ""
        if _is_ours(value):
            return Member(name, kind, signature_of(value), text, _home(value, owner), _line(value))
    return None


def _home(value: Any, owner: type) -> str:
    return str(getattr(_unwrapped(value), "__module__", None) or owner.__module__)


def _fields_of(owner: type) -> dict[str, tuple[str, str, int]]:
    """The fields that the class's own source declares."""
    try:
        tree = _tree(inspect.getfile(owner))
    except (TypeError, OSError):
        return {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
            return _documented_assignments(node.body)
    return {}


def _members_of(owner: type) -> tuple[Member, ...]:
    """The members that the class itself defines, fields first, then in the order of the source."""
    fields = _fields_of(owner)
    names = dict.fromkeys([*fields, *vars(owner)])
    found = []
    for name in names:
        if name.startswith("_"):
            continue
        raw = vars(owner).get(name)
        member = None if raw is None else _member(owner, name, raw)
        if member is None and name in fields:
            annotation, text, line = fields[name]
            signature = f": {annotation}" if annotation else ""
            member = Member(name, "field", signature, text, owner.__module__, line)
        if member is not None:
            found.append(member)
    return tuple(found)


def _inherited(owner: type) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The public names that come from each class above, nearest first."""
    seen = set(vars(owner))
    found = []
    for base in owner.__mro__[1:]:
        if not _is_ours(base):
            continue
        names = [
            name for name, raw in vars(base).items() if not name.startswith("_") and name not in seen and raw
        ]
        seen.update(names)
        if names:
            found.append((f"{base.__module__}.{base.__name__}", tuple(names)))
    return tuple(found)


def _describe(namespace: str, name: str, value: Any, module: ModuleType) -> Name:
    if inspect.isclass(value) and _is_ours(value):
        return Name(
            namespace,
            name,
            "class",
            value,
            value.__module__,
            signature_of(value).removesuffix(" -> None"),
            inspect.getdoc(value) or "",
            _line(value),
            tuple(f"{base.__module__}.{base.__name__}" for base in value.__bases__ if base is not object),
            _members_of(value),
            _inherited(value),
        )
    if callable(value) and _is_ours(value):
        whole = _unwrapped(value)
        home = getattr(whole, "__module__", module.__name__) or module.__name__
        text = inspect.getdoc(value) or ""
        return Name(namespace, name, "function", value, home, signature_of(value), text, _line(value))
    written = _documented_assignments(_tree(str(module.__file__)).body).get(name, ("", "", 1))
    annotation, text, line = written
    signature = f": {annotation}" if annotation else ""
    return Name(namespace, name, "data", value, module.__name__, signature, text, line)


def _modules() -> Iterator[str]:
    yield "tilewright"
    for found in pkgutil.walk_packages([str(PACKAGE)], "tilewright."):
        short = found.name.removeprefix("tilewright.")
        if any(part.startswith("_") for part in short.split(".")) or short in INNER:
            continue
        if (
            found.ispkg
            or short in TOP_MODULES
            or short in OTHER_MODULES
            or short.startswith(("contrib.", "relay.testing."))
        ):
            yield found.name


@functools.cache
def namespaces() -> tuple[Namespace, ...]:
    """Every namespace that has public names, by its path."""
    made = []
    for path in sorted(set(_modules())):
        module = importlib.import_module(path)
        names = []
        for name in _exported(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                names.append(_describe(path, name, value, module))
        if names:
            made.append(Namespace(path, inspect.getdoc(module) or "", names))
    return tuple(made)


def without_text() -> list[str]:
    """The public names and members of classes without documentation."""
    lacking = [one.path for one in namespaces() if not one.text]
    for namespace in namespaces():
        for name in namespace.names:
            # An alias of a type speaks for itself.
            if not name.text and name.kind != "data":
                lacking.append(name.path)
            lacking += [
                f"{name.path}.{one.name}" for one in name.members if not one.text and one.kind != "field"
            ]
    return lacking
