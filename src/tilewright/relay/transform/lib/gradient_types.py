"""The types of the values that higher-order gradients compute with.

- A floating-point tensor becomes a pair of the tensor and a reference to its gradient; other tensors are unchanged.
- A function takes one more argument: the reference to the backpropagator, the function that runs the rest of the
  backward pass. Calling the function prepends to it.
- A data type whose constructors take tensors or functions gets a twin whose constructors take their converted types; a
  data type that is generic in all of them is unchanged.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import FuncType, GlobalTypeVar, RelayRefType, TupleType, Type
from tilewright.relay.transform.lib.gradient_rules import carries_gradient
from tilewright.relay.type_functor import TypeMutator, TypeVisitor

BACKPROPAGATOR = RelayRefType(FuncType([], TupleType([])))


class _Content(TypeVisitor):
    """The contents of a type: whether it holds something that changes, and which data types it names."""

    def __init__(self) -> None:
        self.changes = False
        self.named: set[GlobalTypeVar] = set()

    def visit_tensor_type(self, tt: TensorType) -> None:
        self.changes = self.changes or carries_gradient(tt)

    def visit_func_type(self, ft: FuncType) -> None:
        self.changes = True

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        self.named.add(gtv)


class GradientTypes(TypeMutator):
    """From a type to that of the value with its gradient. New data types are added to the module."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self.twins: dict[GlobalTypeVar, GlobalTypeVar] = {}
        self.constructors: dict[Constructor, Constructor] = {}
        self._changing = _changing_types(mod)

    def visit_tensor_type(self, tt: TensorType) -> Type:
        """A pair where there are gradients."""
        return TupleType([tt, RelayRefType(tt)]) if carries_gradient(tt) else tt

    def visit_func_type(self, ft: FuncType) -> Type:
        """One more argument."""
        arguments = [self.visit(argument) for argument in ft.arg_types]
        return FuncType([*arguments, BACKPROPAGATOR], self.visit(ft.ret_type), ft.type_params)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Type:
        """The twin, where the data type has one."""
        if gtv not in self._changing:
            return gtv
        if gtv not in self.twins:
            self._make_twin(gtv)
        return self.twins[gtv]

    def constructor(self, given: Constructor) -> Constructor:
        """The constructor of the twin."""
        self.visit(given.belong_to)
        return self.constructors.get(given, given)

    def _make_twin(self, gtv: GlobalTypeVar) -> None:
        assert self.mod is not None
        definition: TypeData = self.mod.type_definitions[gtv]
        known = {name.name_hint for name in self.mod.type_definitions}
        name = f"{gtv.name_hint}_grad"
        while name in known:
            name = f"{name}_"
        twin = self.twins[gtv] = GlobalTypeVar(name, gtv.kind)
        suffix = name.removeprefix(gtv.name_hint)
        constructors = [
            Constructor(f"{one.name_hint}{suffix}", [self.visit(given) for given in one.inputs], twin)
            for one in definition.constructors
        ]
        made = TypeData(twin, definition.type_vars, constructors)
        self.constructors.update(zip(definition.constructors, made.constructors, strict=True))
        self.mod[twin] = made


def _changing_types(mod: IRModule | None) -> set[GlobalTypeVar]:
    """The data types that hold tensors or functions, themselves or through others."""
    if mod is None:
        return set()
    contents: dict[Any, _Content] = {}
    for name, definition in mod.type_definitions.items():
        contents[name] = _Content()
        for constructor in definition.constructors:
            for given in constructor.inputs:
                contents[name].visit(given)
    found = {name for name, content in contents.items() if content.changes}
    grown = True
    while grown:
        more = {name for name, content in contents.items() if content.named & found} - found
        grown = bool(more)
        found |= more
    return found
