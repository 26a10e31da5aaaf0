"""The registry of operators: Relay's operators and the intrinsics that loop programs call.

An ``Op`` is unique by name (``Op.get("tir.exp") is Op.get("tir.exp")``) and carries named attributes. An attribute set
with a higher level wins over one with a lower.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar

from tilewright.ir.attrs import AttrFieldInfo
from tilewright.ir.base import RelayExpr
from tilewright.support.errors import OpError, TilewrightError
from tilewright.support.slot import ALL_LEVELS
from tilewright.support.suggestions import did_you_mean


class CallEffectKind(IntEnum):
    """The side effects of an operator: what a pass may move, repeat or remove."""

    ExprAnnotation = 0
    """Gives its argument, with a hint to the compiler."""
    Pure = 1
    """Depends only on its arguments."""
    ReadState = 2
    """May read memory or other state."""
    UpdateState = 3
    """May write memory or other state."""
    SpecialCallArg = 4
    """Has meaning only as an argument of another call."""
    EmbedInfo = 5
    """Carries information for a later pass, and has no effect itself."""
    ControlJump = 6
    """May change the flow of control."""

    # Names that older scripts use.
    Opaque = 3


class Op(RelayExpr):
    """A named operator with attributes."""

    __slots__ = ("_attributes", "attrs_type_key", "description", "name", "num_inputs", "support_level")

    registry: ClassVar[dict[str, Op]] = {}
    named_relations: ClassVar[dict[str, Callable[..., Any]]] = {}
    """Type relations that operators of users take by name: ``add_type_rel("Identity")``."""

    name: str
    description: str
    num_inputs: int
    support_level: int
    attrs_type_key: str
    _attributes: dict[str, tuple[Any, int]]

    def __init__(self) -> None:
        raise TilewrightError("operators are made by Op.register(name) and found by Op.get(name)")

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return Op.get, (self.name,)

    @staticmethod
    def register(name: str, description: str = "") -> Op:
        """The operator of this name, made if there is none yet."""
        found = Op.registry.get(name)
        if found is None:
            found = object.__new__(Op)
            found.name = name
            found.description = description
            found.num_inputs = -1
            found.support_level = 10
            found.attrs_type_key = ""
            found._attributes = {}
            Op.registry[name] = found
        return found

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of this name."""
        found = Op.registry.get(op_name)
        if found is None:
            ALL_LEVELS.value()
            found = Op.registry.get(op_name)
        if found is None:
            hint = did_you_mean(str(op_name), Op.registry)
            raise OpError(f"operator {op_name!r} is not registered{hint}")
        return found

    @staticmethod
    def list_op_names() -> list[str]:
        """The names of all operators, sorted."""
        ALL_LEVELS.value()
        return sorted(Op.registry)

    def get_attr(self, attr_name: str) -> Any:
        """The attribute's value, or None."""
        found = self._attributes.get(attr_name)
        return None if found is None else found[0]

    def has_attr(self, attr_name: str) -> bool:
        """True if the attribute was set."""
        return attr_name in self._attributes

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Set an attribute; setting it again needs a higher level."""
        found = self._attributes.get(attr_name)
        if found is not None and found[1] == plevel:
            raise OpError(f"attribute {attr_name} of operator {self.name} is already set at level {plevel}")
        if found is None or found[1] < plevel:
            self._attributes[attr_name] = (value, plevel)

    def reset_attr(self, attr_name: str) -> None:
        """Forget the attribute."""
        self._attributes.pop(attr_name, None)

    def add_type_rel(self, rel_name: str, type_rel_func: Callable[..., Any] | None = None) -> None:
        """Set the type relation by which calls are checked; without a function, the one known by this name."""
        if type_rel_func is None:
            type_rel_func = Op.named_relations.get(rel_name)
        if type_rel_func is None:
            known = ", ".join(sorted(Op.named_relations))
            raise OpError(f"there is no type relation {rel_name!r}, only {known}: give the function as well")
        self._attributes["TypeRelation"] = ((rel_name, type_rel_func), 10)

    def add_argument(self, name: str, type: str, description: str) -> None:
        """Describe one more argument."""
        arguments, level = self._attributes.get("Arguments", ((), 10))
        self._attributes["Arguments"] = ((*arguments, (name, type, description)), level)

    @property
    def arguments(self) -> list[AttrFieldInfo]:
        """The arguments that were described, in order."""
        return [AttrFieldInfo(*argument) for argument in self.get_attr("Arguments") or ()]

    def set_support_level(self, level: int) -> None:
        """How essential the operator is; one is the most."""
        self.support_level = level

    def set_num_inputs(self, n: int) -> None:
        """How many arguments a call has; -1 for any number."""
        self.num_inputs = n

    def set_attrs_type_key(self, key: str) -> None:
        """Name the class of the attributes that calls carry."""
        self.attrs_type_key = key

    @property
    def effect(self) -> CallEffectKind:
        """The effect of a call; an operator that says nothing is taken to update state."""
        found = self._attributes.get("TCallEffectKind")
        return CallEffectKind.UpdateState if found is None else found[0]

    def __repr__(self) -> str:
        return f"Op({self.name})"


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set an attribute of an operator, made if there is none of this name; a decorator where no value is given."""

    def register(given: Any) -> Any:
        Op.register(op_name).set_attr(attr_key, given, level)
        return given

    return register(value) if value is not None else register


def register_intrin_lowering(
    op_name: str, target: str, *, f: Callable[..., Any] | None = None, level: int = 10
) -> Callable[..., Any]:
    """Register how an intrinsic is lowered for a target; a decorator where ``f`` is not given."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        Op.register(op_name).set_attr(f"{target}.FLowerIntrinsic", function, level)
        return function

    return register(f) if f is not None else register
