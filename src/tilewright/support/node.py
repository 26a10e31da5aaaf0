"""The decorator that defines IR nodes.

``@node`` turns an annotated class into a slotted one with identity equality, and generates ``children`` and
``map_children`` from the annotations:

    @node
    class Let(PrimExpr):
        var: Defines[Var]           # a definition of a variable: not a child to rewrite
        value: Child[PrimExpr]      # one child
        body: Child[PrimExpr]
        ...
        indices: Children[PrimExpr] # a tuple of children
        predicate: OptionalChild[PrimExpr]

Nodes are immutable: no pass may modify one in place. ``TILEWRIGHT_CHECK=1`` enforces this at run time. (The type
checker cannot: it would also forbid the assignments in hand-written constructors.) Creating a plain slotted object
costs 0.2 microseconds; checking every assignment costs four times that, so it is off outside tests.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

from tilewright.support.options import CHECK
from tilewright.support.recursion import recursion_room

T = TypeVar("T")

Child = Annotated[T, "child"]
OptionalChild = Annotated[T | None, "optional child"]
Children = Annotated[tuple[T, ...], "children"]
Defines = Annotated[T, "definition"]


class Object:
    """Base of what programs are made of and handed: nodes, arrays, containers, schedules."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """True if this is the very same object."""
        return self is other


class Node(Object):
    """Base of all IR nodes. ``field_names`` names the slots that make up its value, in the order of the
    constructor."""

    __slots__ = ("__weakref__",)

    node_kind: ClassVar[str] = "node"
    field_names: ClassVar[tuple[str, ...]] = ()
    child_fields: ClassVar[tuple[tuple[str, str], ...]] = ()
    defining_fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.node_kind = snake_case(cls.__name__)

    def children(self) -> tuple[Node, ...]:
        """The direct children, in order."""
        return ()

    def map_children(self: T, function: Callable[[Any], Any]) -> T:
        """This node with each child replaced by ``function(child)``; this very node if nothing changed."""
        return self

    def saved_slot(self, name: str) -> Any:
        """What is written for a slot; a node that its own parts refer to writes something else there."""
        return getattr(self, name)

    def loaded(self: T) -> T:
        """This node after its slots were read: what ``saved_slot`` wrote is what it stands for again."""
        return self

    def rebuild(self: T, **changes: Any) -> T:
        """``replace`` for children; a class whose other slots follow from its children overrides this."""
        return self.replace(**changes)  # type: ignore[attr-defined, no-any-return]

    def replace(self: T, **changes: Any) -> T:
        """A copy with some fields replaced; fields that are not named keep their values."""
        made = object.__new__(type(self))
        for name in all_slots(type(self)):
            if name in changes:
                object.__setattr__(made, name, changes[name])
            elif hasattr(self, name):
                object.__setattr__(made, name, getattr(self, name))
        return made

    def __setstate__(self, state: Any) -> None:
        """Take the value that ``__getstate__`` gave for a node of this class. A node that has a value already, and so
        may have been handed the state of nodes that are in use, takes a deep copy, which shares nothing with them."""
        if any(hasattr(self, name) for name in all_slots(type(self))):
            with recursion_room():
                state = copy.deepcopy(state)
        for values in state if isinstance(state, tuple) else (state,):
            for name, value in (values or {}).items():
                object.__setattr__(self, name, value)


_SLOTS: dict[type, tuple[str, ...]] = {}


def all_slots(cls: type) -> tuple[str, ...]:
    """Every slot of the class and its bases but ``__weakref__``."""
    found = _SLOTS.get(cls)
    if found is None:
        names = [name for base in reversed(cls.__mro__) for name in base.__dict__.get("__slots__", ())]
        found = _SLOTS[cls] = tuple(name for name in dict.fromkeys(names) if name != "__weakref__")
    return found


def _assign_once(self: object, name: str, value: object) -> None:
    """``__setattr__`` of a node under check: a field gets its value once, in the constructor."""
    if hasattr(self, name):
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name} cannot change; use replace({name}=...)"
        )
    object.__setattr__(self, name, value)


def snake_case(name: str) -> str:
    """``BufferLoad`` to ``buffer_load``; runs of capitals stay together: ``EQ`` to ``eq``."""
    parts: list[str] = []
    for position, letter in enumerate(name):
        if letter.isupper() and position and not name[position - 1].isupper():
            parts.append("_")
        parts.append(letter.lower())
    return "".join(parts)


_ROLES = {"Child[": "one", "OptionalChild[": "optional", "Children[": "many"}


def _role(annotation: str) -> str | None:
    """How a field with this annotation takes part in ``children``."""
    return next((role for prefix, role in _ROLES.items() if annotation.startswith(prefix)), None)


@dataclass_transform(frozen_default=False, eq_default=False, kw_only_default=False)
def node(cls: type[T]) -> type[T]:
    """Make a node class; see the module's text. The class must be written under ``from __future__ import
    annotations``."""
    annotations: dict[str, str] = {
        name: text for name, text in inspect.get_annotations(cls).items() if not text.startswith("ClassVar")
    }
    defaults = {name: cls.__dict__[name] for name in annotations if name in cls.__dict__}
    inherited_fields: tuple[str, ...] = getattr(cls, "field_names", ())
    inherited_children: tuple[tuple[str, str], ...] = getattr(cls, "child_fields", ())
    own_children = tuple((name, role) for name, text in annotations.items() if (role := _role(text)))
    namespace: dict[str, Any] = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in annotations and name not in ("__dict__", "__weakref__", "__slots__")
    }
    inherited_slots = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    namespace["__slots__"] = tuple(name for name in annotations if name not in inherited_slots)
    hidden = cls.__dict__.get("derived", ())
    namespace["field_names"] = tuple(
        dict.fromkeys(
            (*inherited_fields, *(name for name in annotations if name != "span" and name not in hidden))
        )
    )
    namespace["child_fields"] = inherited_children + own_children
    namespace["defining_fields"] = getattr(cls, "defining_fields", ()) + tuple(
        name for name, text in annotations.items() if text.startswith("Defines[")
    )
    if CHECK:
        namespace["__setattr__"] = _assign_once
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    if not any("__init__" in base.__dict__ for base in made.__mro__[:-1]):
        made.__init__ = _make_init(annotations, defaults)
    made.children = _make_children(made.child_fields)
    made.map_children = _make_map_children(made.child_fields)
    return made  # type: ignore[no-any-return]


def _make_init(annotations: dict[str, str], defaults: dict[str, Any]) -> Callable[..., None]:
    """A constructor that takes the annotated fields in order."""
    parameters = [f"{name}=defaults[{name!r}]" if name in defaults else name for name in annotations]
    lines = [f"def __init__(self, {', '.join(parameters)}):"] + [
        f"    self.{name} = {name}" for name in annotations
    ]
    return _compile("\n".join(lines), "__init__", {"defaults": defaults})


def _make_children(roles: tuple[tuple[str, str], ...]) -> Callable[..., Any]:
    """``children`` for these fields, as straight-line code."""
    if not roles:
        return Node.children
    if all(role == "one" for _, role in roles):
        return _compile(
            f"def children(self):\n    return ({', '.join(f'self.{name}' for name, _ in roles)},)",
            "children",
            {},
        )
    parts = {
        "one": "(self.{0},)",
        "many": "tuple(self.{0})",
        "optional": "(() if self.{0} is None else (self.{0},))",
    }
    total = " + ".join(parts[role].format(name) for name, role in roles)
    return _compile(f"def children(self):\n    return {total}", "children", {})


def _make_map_children(roles: tuple[tuple[str, str], ...]) -> Callable[..., Any]:
    """``map_children`` for these fields. Written out, so that recursion through it stays within Python frames."""
    if not roles:
        return Node.map_children
    lines = ["def map_children(self, function):"]
    tests = []
    for name, role in roles:
        lines.append(f"    old_{name} = self.{name}")
        if role == "many":
            lines.append(f"    new_{name} = []; same_{name} = True")
            lines.append(f"    for item in old_{name}:")
            lines.append("        made = function(item)")
            lines.append(f"        same_{name} = same_{name} and made is item")
            lines.append(f"        new_{name}.append(made)")
            lines.append(f"    new_{name} = old_{name} if same_{name} else tuple(new_{name})")
            tests.append(f"same_{name}")
        elif role == "optional":
            lines.append(f"    new_{name} = None if old_{name} is None else function(old_{name})")
            tests.append(f"new_{name} is old_{name}")
        else:
            lines.append(f"    new_{name} = function(old_{name})")
            tests.append(f"new_{name} is old_{name}")
    lines.append(f"    if {' and '.join(tests)}:")
    lines.append("        return self")
    lines.append(f"    return self.rebuild({', '.join(f'{name}=new_{name}' for name, _ in roles)})")
    return _compile("\n".join(lines), "map_children", {})


def _compile(source: str, name: str, environment: dict[str, Any]) -> Callable[..., Any]:
    """The function that the source text defines."""
    exec(compile(source, f"<tilewright node {name}>", "exec"), environment)
    made: Callable[..., Any] = environment[name]
    return made
