"""Modules: functions that may call one another, and the type definitions they use.

A pass takes a module and returns a new one; it never modifies its input. Users may modify theirs with ``module["name"]
= function`` and ``update``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.base import BaseExpr, RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.type import GlobalTypeVar
from tilewright.support import html, terminal
from tilewright.support.errors import ExpressionError, TilewrightError
from tilewright.support.node import Node
from tilewright.support.slot import GRAPH_FILE, GRAPH_FUNCTION, MODULE_LOOK, MODULE_SCRIPT, MODULE_TEXT


class _Functions(dict[GlobalVar, BaseFunc]):
    """The functions of a module; programs take the first of their items. As a key it stands for itself."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def items(self) -> list[tuple[GlobalVar, BaseFunc]]:  # type: ignore[override]
        """Pairs of variables and functions, as a list."""
        return list(dict.items(self))


class IRModule(Node):
    """Functions by global variable, type definitions by global type variable, and attributes of the whole."""

    __slots__ = ("_names", "_type_names", "attrs", "functions", "type_definitions")

    functions: _Functions
    type_definitions: dict[GlobalTypeVar, Any]
    attrs: DictAttrs

    def __init__(
        self,
        functions: Mapping[Any, BaseFunc] | None = None,
        type_definitions: Mapping[Any, Any] | None = None,
        attrs: DictAttrs | Mapping[str, Any] | None = None,
    ) -> None:
        self.functions = _Functions()
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
        expr = getattr(expr, "tuple_value", expr) if not isinstance(expr, RelayExpr) else expr
        if not isinstance(expr, RelayExpr):
            raise ExpressionError(f"a module is made from a function, not from {type(expr).__name__}")
        function: BaseFunc = expr if isinstance(expr, BaseFunc) else GRAPH_FUNCTION.value(expr)
        made = IRModule(functions, type_defs)
        made[str(function.attrs.get("global_symbol", "main"))] = function
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
        if isinstance(val, RelayExpr) and not isinstance(val, BaseFunc):
            val = GRAPH_FUNCTION.value(val)
        if not isinstance(val, BaseFunc):
            raise ExpressionError(f"a module holds functions, not {type(val).__name__}")
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

    def _move(self) -> IRModule:
        """This module. In TVM, it may be changed in place afterwards; here, passes make new ones."""
        return self

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
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

    def _add(self, var: GlobalVar | GlobalTypeVar | str, val: Any, update: bool = False) -> None:
        """Add a function, an expression as one, or a type, as TVM's programs do it; one that is there is replaced only
        where the caller says so."""
        if not update and not isinstance(var, GlobalTypeVar) and var in self:
            name = var if isinstance(var, str) else var.name_hint
            raise ExpressionError(f"the module has a function {name} already; say update=True to replace it")
        self[var] = val

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
        return MODULE_SCRIPT.value(self, tir_prefix, show_meta)

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the module, with the colours of a style ("light", "dark", "ansi"), or as the terminal has them.
        ``black_format`` changes nothing: the text is formatted."""
        terminal.show(str(self), style)

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The module in the text form of graph-level programs; in TVMScript where all functions are loop-level ones."""
        if self._is_script():
            return self.script()
        return MODULE_TEXT.value(self, show_meta_data, annotate)

    def _is_script(self) -> bool:
        """True if all that the module has can be written in TVMScript."""
        return (
            bool(self.functions)
            and not self.type_definitions
            and all(function.text_form == "script" for function in self.functions.values())
        )

    def import_(self, file_to_import: str) -> None:
        """Add the definitions of a file in the text form of graph-level programs."""
        self._import(file_to_import, False)

    def import_from_std(self, file_to_import: str) -> None:
        """Add the definitions of a file of the standard library, such as "prelude.rly". Those that it has stay."""
        self._import(file_to_import, True)

    def _import(self, path: str, standard: bool) -> None:
        GRAPH_FILE.value(self, path, standard)

    def __repr__(self) -> str:
        is_empty = not self.functions and not self.type_definitions
        return self.script() if is_empty or self._is_script() else MODULE_LOOK.value(self)

    def _repr_html_(self) -> str:
        """The program for a notebook."""
        names = [variable.name_hint for variable in self.functions]
        listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        return html.fragment("IRModule", html.program(repr(self)), subtitle=listed)
