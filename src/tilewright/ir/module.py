"""Modules: functions that may call one another, and the type definitions they use.

A pass takes a module and returns a new one; it never modifies its input. Users may modify theirs with ``module["name"]
= function`` and ``update``.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Mapping
from typing import Any

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.base import BaseExpr, RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.type import GlobalTypeVar
from tilewright.support.errors import ExpressionError, TilewrightError
from tilewright.support.node import Node

PRINTERS: dict[str, Callable[..., str]] = {}
"""Text forms: "script" (module, prefix, show_meta), "text" (module, show_meta_data, annotate) and "pretty" (module),
the text to look at; set by the layers that print functions."""

IMPORTERS: list[Callable[[IRModule, str, bool], None]] = []
"""What adds the definitions of a file to a module (module, path, whether the file is one of the standard library's);
set by the layer that reads the text form."""


FUNCTION_OF: list[Callable[[Any], BaseFunc]] = []
"""Makes a function of an expression and its free variables; set by the graph level."""


class IRModule(Node):
    """Functions by global variable, type definitions by global type variable, and attributes of the whole."""

    __slots__ = ("_names", "_type_names", "attrs", "functions", "type_definitions")

    functions: dict[GlobalVar, BaseFunc]
    type_definitions: dict[GlobalTypeVar, Any]
    attrs: DictAttrs

    def __init__(
        self,
        functions: Mapping[Any, BaseFunc] | None = None,
        type_definitions: Mapping[Any, Any] | None = None,
        attrs: DictAttrs | Mapping[str, Any] | None = None,
    ) -> None:
        self.functions = {}
        self.type_definitions = {}
        self._names: dict[str, GlobalVar] = {}
        self._type_names: dict[str, GlobalTypeVar] = {}
        self.attrs = attrs if isinstance(attrs, DictAttrs) else DictAttrs(attrs)
        for variable, function in (functions or {}).items():
            self[variable] = function
        for type_variable, definition in (type_definitions or {}).items():
            self._add_type(type_variable, definition)

    @staticmethod
    def from_expr(
        expr: BaseExpr,
        functions: Mapping[Any, BaseFunc] | None = None,
        type_defs: Mapping[Any, Any] | None = None,
    ) -> IRModule:
        """A module with this function under its "global_symbol", or "main" where it has none. Another graph-level
        expression becomes the body of a function of its free variables."""
        if not isinstance(expr, BaseFunc):
            if not FUNCTION_OF or not isinstance(expr, RelayExpr):
                raise ExpressionError(f"a module is made from a function, not from {type(expr).__name__}")
            expr = FUNCTION_OF[0](expr)
        made = IRModule(functions, type_defs)
        made[str(expr.attrs.get("global_symbol", "main"))] = expr
        return made

    def copy(self) -> IRModule:
        """Another module with the same functions, types and attributes."""
        return IRModule(self.functions, self.type_definitions, self.attrs)

    def with_functions(self, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
        """A copy with these functions in place of all of this module's."""
        return IRModule(functions, self.type_definitions, self.attrs)

    def map_functions(self, change: Callable[[GlobalVar, BaseFunc], BaseFunc | None]) -> IRModule:
        """A copy with each function replaced, or left out where the change gives None; this module if none changed."""
        made: dict[GlobalVar, BaseFunc] = {}
        same = True
        for variable, function in self.functions.items():
            changed = change(variable, function)
            same = same and changed is function
            if changed is not None:
                made[variable] = changed
        return self if same else self.with_functions(made)

    def __setitem__(self, var: GlobalVar | GlobalTypeVar | str, val: Any) -> None:
        if isinstance(var, GlobalTypeVar):
            self._add_type(var, val)
            return
        if not isinstance(val, BaseFunc):
            raise ExpressionError(
                f"a module holds functions, not {type(val).__name__}; wrap an expression in a function"
            )
        variable = self._variable_for(var)
        self.functions[variable] = val

    def _variable_for(self, var: GlobalVar | str) -> GlobalVar:
        """The variable under which a function is put; one name never has two."""
        if isinstance(var, str):
            variable = self._names.get(var) or GlobalVar(var)
        elif isinstance(var, GlobalVar):
            known = self._names.get(var.name_hint)
            if known is not None and known is not var:
                # The newest variable wins, as calls inside the new function refer to it.
                del self.functions[known]
            variable = var
        else:
            raise ExpressionError(f"a function of a module has a name or a GlobalVar, not {var!r}")
        self._names[variable.name_hint] = variable
        return variable

    def _add_type(self, variable: GlobalTypeVar | str, definition: Any) -> None:
        if isinstance(variable, str):
            variable = self._type_names.get(variable) or GlobalTypeVar(variable)
        self._type_names[variable.name_hint] = variable
        self.type_definitions[variable] = definition

    def __getitem__(self, var: GlobalVar | GlobalTypeVar | str) -> Any:
        if isinstance(var, GlobalTypeVar):
            found = self.type_definitions.get(var)
            if found is None:
                raise TilewrightError(f"the module has no type {var.name_hint}")
            return found
        variable = self.get_global_var(var) if isinstance(var, str) else self._names.get(var.name_hint)
        if variable is None:
            raise TilewrightError(f"the module has no function {var}; it has {self._function_list()}")
        return self.functions[variable]

    def __contains__(self, var: object) -> bool:
        name = var.name_hint if isinstance(var, GlobalVar) else var
        return isinstance(name, str) and name in self._names

    def __delitem__(self, var: GlobalVar | str) -> None:
        name = var if isinstance(var, str) else var.name_hint
        del self.functions[self.get_global_var(name)]
        del self._names[name]

    def functions_items(self) -> ItemsView[GlobalVar, BaseFunc]:
        """Pairs of variable and function."""
        return self.functions.items()

    def update(self, other: IRModule | Mapping[Any, BaseFunc]) -> None:
        """Take over the functions and types of another module; those of the same name are replaced."""
        module = other if isinstance(other, IRModule) else IRModule(other)
        for variable, function in module.functions.items():
            self[variable.name_hint] = function
        for type_variable, definition in module.type_definitions.items():
            self._add_type(type_variable, definition)

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Replace or add one function."""
        self[var] = func

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of this name."""
        found = self._names.get(name)
        if found is None:
            raise TilewrightError(f"the module has no function {name!r}; it has {self._function_list()}")
        return found

    def _function_list(self) -> str:
        return ", ".join(self._names) or "none"

    def get_global_vars(self) -> list[GlobalVar]:
        """The variables of all functions."""
        return list(self.functions)

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The variables of all type definitions."""
        return list(self.type_definitions)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The type variable of this name."""
        found = self._type_names.get(name)
        if found is None:
            raise TilewrightError(f"the module has no type {name!r}")
        return found

    def get_constructor(self, tag: int) -> Any:
        """The constructor with this tag, among all type definitions."""
        for definition in self.type_definitions.values():
            for constructor in definition.constructors:
                if constructor.tag == tag:
                    return constructor
        raise TilewrightError(f"the module has no constructor with tag {tag}")

    def get_type(self, name: str) -> tuple[Any, ...]:
        """The type variable of this name, followed by the constructors of its definition."""
        variable = self.get_global_type_var(name)
        return (variable, *self.type_definitions[variable].constructors)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """A copy with an attribute set."""
        return IRModule(
            self.functions, self.type_definitions, {**dict(self.attrs.items()), attr_key: attr_value}
        )

    def without_attr(self, attr_key: str) -> IRModule:
        """A copy without an attribute."""
        kept = {key: value for key, value in self.attrs.items() if key != attr_key}
        return IRModule(self.functions, self.type_definitions, kept)

    def get_attr(self, attr_key: str, default: Any = None) -> Any:
        """An attribute's value, or the default."""
        return self.attrs.get(attr_key, default)

    def script(self, tir_prefix: str = "T", show_meta: bool = False) -> str:
        """The module in TVMScript."""
        return self._printed("script", tir_prefix, show_meta)

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The module in the text format of graph-level functions; in TVMScript where it has none."""
        if "text" in PRINTERS:
            return PRINTERS["text"](self, show_meta_data, annotate)
        return self.script()

    def _printed(self, form: str, *options: Any) -> str:
        printer = PRINTERS.get(form)
        if printer is None:
            raise TilewrightError(f"no printer for the form {form!r} is loaded; import tilewright")
        return printer(self, *options)

    def import_(self, file_to_import: str) -> None:
        """Add the definitions of a file in the text form of graph-level programs."""
        self._import(file_to_import, False)

    def import_from_std(self, file_to_import: str) -> None:
        """Add the definitions of a file of the standard library, such as "prelude.rly". Those that it has stay."""
        self._import(file_to_import, True)

    def _import(self, path: str, standard: bool) -> None:
        if not IMPORTERS:
            raise TilewrightError("files are read by the graph level: import tilewright.relay")
        IMPORTERS[0](self, path, standard)

    def __repr__(self) -> str:
        if "pretty" in PRINTERS and (self.functions or self.type_definitions):
            return self._printed("pretty")
        return (
            self._printed("script", "T", False)
            if "script" in PRINTERS
            else f"IRModule({self._function_list()})"
        )
