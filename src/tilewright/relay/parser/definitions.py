"""Modules: definitions of types and functions, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.attrs import DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.type import STORAGE, VERSION_HEADER, GlobalTypeVar
from tilewright.relay.parser.expressions import KEYWORDS, ExpressionParser
from tilewright.relay.parser.stream import shown
from tilewright.relay.parser.tokens import END, Source, Token
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.script.parser import parse_source


class DefinitionParser(ExpressionParser):
    """Reads a whole text. The definitions of ``module`` can be used in it, and those of the text are added to it. Where
    ``importing`` is set, what the module already has from the same source stays."""

    def __init__(
        self,
        source: Source,
        module: IRModule,
        meta_table: Mapping[str, Sequence[Any]] | None = None,
        importing: bool = False,
    ) -> None:
        super().__init__(source, meta_table)
        self.module = module
        self.importing = importing
        self.defined_types: set[str] = set()
        self.defined_functions: set[str] = set()
        self.first_uses: dict[str, Token] = {}
        self.global_vars = {variable.name_hint: variable for variable in module.functions}
        for variable, data in module.type_definitions.items():
            self.type_names[variable.name_hint] = variable
            self._add_constructors(data)

    def _add_constructors(self, data: TypeData) -> None:
        for constructor in data.constructors:
            self.constructors[constructor.name_hint] = constructor

    # The text as a whole

    def version(self) -> None:
        """The first line, if there is one: it must be of the version that is known here."""
        if self.at("version"):
            token = self.advance()
            if token.text.replace(" ", "") != VERSION_HEADER.replace(" ", ""):
                self.fail(token, f"the text is of another version than {VERSION_HEADER}")

    def end(self) -> None:
        """Nothing but the metadata may follow."""
        self.accept("metadata")
        if not self.at(END):
            self.fail(self.current, f"expected the end of the text, found {shown(self.current)}")

    def whole_expression(self) -> RelayExpr:
        """A text that is one expression."""
        self.version()
        result = self.body()
        self.end()
        return result

    def whole_module(self) -> IRModule:
        """A text of definitions. Types come to be known first, so that their order does not matter."""
        self.version()
        attributes: dict[str, Any] = {}
        if self.at("attributes"):
            token = self.advance()
            found = self.value()
            if not isinstance(found, dict):
                self.fail(token, "the attributes of a module are a mapping")
            attributes = found
            self.expect("]")
        begin = self.position
        self._each_definition(begin, self._type_name, self._pass_over_braces)
        self._each_definition(begin, self._type_definition, self._pass_over_braces)
        self._each_definition(begin, self._pass_over_type, self._function_definition)
        self.end()
        for name, token in self.first_uses.items():
            if name not in self.module:
                self.fail(token, f"the function @{name} is not defined in the module")
        if attributes:
            self.module.attrs = DictAttrs({**dict(self.module.attrs.items()), **attributes})
        return self.module

    def global_var(self, name: str) -> Any:
        """The one variable for a global name; remembers the first use, to report it if no definition follows."""
        self.first_uses.setdefault(name, self.tokens[self.position - 1])
        return super().global_var(name)

    def _each_definition(
        self, begin: int, on_type: Callable[[], None], on_function: Callable[[], None]
    ) -> None:
        """Go through the definitions from the first one on."""
        self.position = begin
        while self.current.kind not in (END, "metadata"):
            token = self.current
            if token.kind in ("type", "extern"):
                on_type()
            elif token.kind == "def":
                on_function()
            elif token.kind == "script":
                self.advance()
                if on_function == self._function_definition:
                    self._loop_function(token)
            else:
                self.fail(
                    token,
                    f"expected a definition (def, type or extern type), found {shown(token)}; "
                    "an expression is read by parse_expr",
                )

    # Types

    def _type_name(self) -> None:
        """Make the name of a type known, and pass over its definition."""
        begin = self.position
        extern = self.accept("extern")
        self.expect("type")
        token = self.expect_word("the name of a type")
        if token.text in KEYWORDS:
            self.fail(token, f"a type cannot have the name {token.text}, which is reserved")
        if token.text in self.defined_types:
            self.fail(token, f"the type {token.text} is defined twice")
        self.defined_types.add(token.text)
        if token.text not in self.type_names:
            known = STORAGE if extern and token.text == STORAGE.name_hint else None
            self.type_names[token.text] = known or GlobalTypeVar(token.text)
        self.position = begin
        self._pass_over_type()

    def _type_definition(self) -> None:
        start = self.current.start
        extern = self.accept("extern")
        self.expect("type")
        name = self.expect_word("the name of a type")
        header = self.type_names[name.text]
        self.type_scopes.append({})
        variables = self.type_parameters()
        constructors: list[Constructor] = []
        if not extern:
            self.expect("{")
            self.sequence("}", lambda: self._constructor(header, constructors))
        self.type_scopes.pop()
        data = TypeData(header, variables, constructors)
        known = self.module.type_definitions.get(header)
        if known is not None:
            if not self.importing or not _same_form(known, data):
                self.fail_since(start, f"the type {name.text} is defined twice")
            return
        self.module[header] = data
        self._add_constructors(data)

    def _constructor(self, header: GlobalTypeVar, found: list[Constructor]) -> None:
        token = self.expect_word("a constructor")
        if token.text in Op.registry or token.text in KEYWORDS:
            self.fail(token, f"a constructor cannot have the name {token.text}, which is reserved")
        known = self.constructors.get(token.text)
        if any(other.name_hint == token.text for other in found) or (
            known is not None and known.belong_to is not header
        ):
            self.fail(token, f"the constructor {token.text} is defined twice")
        inputs = self.sequence(")", self.type) if self.accept("(") else []
        found.append(Constructor(token.text, inputs, header))

    def _pass_over_type(self) -> None:
        """Go behind the definition of a type; one from outside has no braces."""
        if not self.accept("extern"):
            self._pass_over_braces()
            return
        self.expect("type")
        self.expect_word("the name of a type")
        if self.at("["):
            while not self.at(END) and not self.accept("]"):
                self.advance()

    def _pass_over_braces(self) -> None:
        """Go behind the braces that end a definition. Braces within parentheses are attribute values."""
        begin = self.current
        depth = 0
        while not self.at(END):
            kind = self.advance().kind
            if kind in ("(", "[", "{"):
                depth += 1
            elif kind in (")", "]", "}"):
                depth -= 1
                if kind == "}" and depth <= 0:
                    return
        self.fail(begin, "the definition does not end")

    # Functions

    def _function_definition(self) -> None:
        start = self.expect("def").start
        token = self.expect("global")
        name = self.name(token)
        if name in self.module:
            span = self.module[name].span
            imported = self.importing and span is not None and span.source_name == self.source.name
            if not imported or name in self.defined_functions:
                self.fail(token, f"the function @{name} is defined twice")
            self.defined_functions.add(name)
            self._pass_over_braces()
            return
        self.defined_functions.add(name)
        self.start_scope()
        function = self.function(start)
        self.module[self.global_var(name)] = function

    def _loop_function(self, token: Token) -> None:
        """A loop-level function, in TVMScript."""
        name = token.text.split("def ", 1)[1].split("(", 1)[0].strip()
        try:
            function = parse_source(token.text)
        except TilewrightError as error:
            self.fail(token, f"the loop-level function {name} cannot be read: {error.message}")
        if not isinstance(function, PrimFunc):
            self.fail(token, "expected a loop-level function")
        if name in self.module:
            self.fail(token, f"the function @{name} is defined twice")
        self.module[self.global_var(name)] = function


def _same_form(first: TypeData, second: TypeData) -> bool:
    """True if two definitions have the same constructors."""
    return len(first.type_vars) == len(second.type_vars) and [
        (one.name_hint, len(one.inputs)) for one in first.constructors
    ] == [(one.name_hint, len(one.inputs)) for one in second.constructors]
