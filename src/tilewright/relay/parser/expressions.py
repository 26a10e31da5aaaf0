"""Expressions: blocks of statements, infix operators, calls, functions, branches.

A numbered name (``%0 = ...;``) refers to an expression of the graph; it is visible in the rest of its block, and after
it unless a closer one has the same number. Names of ``let``, parameters and patterns are visible in their block.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.attrs import ATTRIBUTE_CLASSES, Attrs, DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.op import Op
from tilewright.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.function import Function
from tilewright.relay.parser.stream import is_word, shown
from tilewright.relay.parser.tokens import Source, TextFormError, Token
from tilewright.relay.parser.types import TypeParser
from tilewright.runtime import ndarray
from tilewright.support.errors import TilewrightError

INFIX: dict[str, tuple[str, int]] = {
    "*": ("multiply", 20),
    "/": ("divide", 20),
    "+": ("add", 10),
    "-": ("subtract", 10),
    "<": ("less", 8),
    ">": ("greater", 8),
    "<=": ("less_equal", 8),
    ">=": ("greater_equal", 8),
    "==": ("equal", 7),
    "!=": ("not_equal", 7),
}
"""Operators between operands, and how tightly they bind."""

_REFERENCES: dict[str, tuple[Any, int]] = {
    "ref": (RefCreate, 1),
    "ref_read": (RefRead, 1),
    "ref_write": (RefWrite, 2),
}
KEYWORDS = frozenset(
    {
        "True",
        "False",
        "_",
        "else",
        "fn",
        "free_var",
        "if",
        "let",
        "match",
        "meta",
        "ref",
        "ref_read",
        "ref_write",
    }
    | {"Tensor", "def", "extern", "type"}
)
"""Words that cannot be the names of types and constructors."""

_STATEMENTS = ("let", "free_var")
_TYPE_KEY = "attrs_type_key"


class ExpressionParser(TypeParser):
    """Reads expressions. ``global_vars`` are the functions named so far, ``constructors`` those of the module."""

    def __init__(self, source: Source, meta_table: Mapping[str, Sequence[Any]] | None = None) -> None:
        super().__init__(source, meta_table)
        self.global_vars: dict[str, GlobalVar] = {}
        self.constructors: dict[str, Constructor] = {}
        self.placed_constants: dict[Constant, Constant] = {}
        self.start_scope()

    def start_scope(self) -> None:
        """Forget local names: the next definition has its own."""
        self.scopes: list[dict[str, Var]] = [{}]
        self.temporaries: list[dict[str, RelayExpr]] = [{}]
        self.all_temporaries: dict[str, RelayExpr] = {}

    # Blocks and statements

    def braced(self) -> RelayExpr:
        """A block in braces."""
        self.expect("{")
        result = self.body()
        self.expect("}")
        return result

    def at_statement(self) -> bool:
        """True where a statement begins that is not an expression."""
        return self.current.kind in _STATEMENTS or (self.at("temporary") and self.kind_after() == "=")

    def body(self, sequences: bool = True) -> RelayExpr:
        """Statements and the expression that they end in. ``first; rest`` computes the first and forgets it."""
        self.scopes.append({})
        self.temporaries.append({})
        chain: list[tuple[int, Var, RelayExpr]] = []
        while True:
            start = self.current.start
            if self.at("let"):
                chain.append((start, *self._let()))
            elif self.at("free_var"):
                self.advance()
                self._declared()
                self.expect(";")
            elif self.at_statement():
                self._temporary()
            else:
                result = self.expression()
                if not (sequences and self.accept(";")):
                    break
                chain.append((start, Var("_", None, self.span_since(start)), result))
        for start, variable, value in reversed(chain):
            result = Let(variable, value, result, self.span_since(start))
        self.temporaries.pop()
        self.scopes.pop()
        return result

    def _let(self) -> tuple[Var, RelayExpr]:
        """A name and its value. A function may refer to itself; another value may use an older variable of the name."""
        self.expect("let")
        token = self.expect("local")
        variable = self._typed_variable(token)
        self.expect("=")
        if self.at("fn"):
            self.scopes[-1][variable.name_hint] = variable
        value = self.expression()
        self.scopes[-1][variable.name_hint] = variable
        self.expect(";", "';' after the value of a variable")
        return variable, value

    def _temporary(self) -> None:
        name = self.expect("temporary").text
        self.expect("=")
        value = self.expression()
        self.expect(";", "';' after a definition")
        self.temporaries[-1][name] = self.all_temporaries[name] = value

    def _typed_variable(self, token: Token) -> Var:
        """A variable with the type behind its name, if there is one."""
        annotation = self.type() if self.accept(":") else None
        return Var(self.name(token), annotation, self.span_since(token.start))

    def _declared(self) -> Var:
        """A new variable, which must be the only one of its name in the innermost scope."""
        token = self.expect("local")
        variable = self._typed_variable(token)
        if variable.name_hint in self.scopes[-1]:
            self.fail(token, f"the variable {token.text} occurs twice")
        self.scopes[-1][variable.name_hint] = variable
        return variable

    # Operators between operands

    def expression(self, least: int = 0) -> RelayExpr:
        """Operands with infix operators that bind at least this tightly."""
        start = self.current.start
        left = self._operand()
        while True:
            name, tightness = INFIX.get(self.current.kind, ("", -1))
            if tightness < least:
                return left
            self.advance()
            right = self.expression(tightness + 1)
            left = Call(Op.get(name), (left, right), span=self.span_since(start))

    def _operand(self) -> RelayExpr:
        """An atom with what follows it, or the negative of one."""
        start = self.current.start
        minuses = 0
        while self.accept("-"):
            minuses += 1
        if self.at("number") or self.at_not_finite():
            # Nothing is called or taken apart here: 1.0 is a number.
            return self._number(start, minuses % 2 == 1)
        inner = self.current.start
        value = self._postfix(self._atom(), inner)
        for _ in range(minuses):
            value = Call(Op.get("negative"), (value,), span=self.span_since(start))
        return value

    def _number(self, start: int, negative: bool) -> Constant:
        value = self.number(negative)
        return Constant(ndarray.array(value), self.span_since(start))

    def _postfix(self, value: RelayExpr, start: int) -> RelayExpr:
        """Calls and fields behind an atom."""
        while True:
            if self.at("("):
                value = self._call(value, (), start)
            elif self.at("["):
                self.advance()
                types = self.sequence("]", self.type)
                if self.at("(") or not _is_empty(value):
                    value = self._call(value, types, start)
                else:
                    value = Call(value, (), None, types, self.span_since(start))
            elif self.at("field"):
                index = self.advance().text[1:]
                if len(index) > 9:
                    self.fail_since(start, f"a tuple has no field {index}")
                value = TupleGetItem(value, int(index), self.span_since(start))
            elif _is_empty(value):
                return Call(value, (), span=self.span_since(start))
            else:
                return value

    # Calls

    def _call(self, callee: RelayExpr, types: Sequence[Any], start: int) -> RelayExpr:
        self.expect("(")
        arguments: list[RelayExpr] = []
        attributes: dict[str, Any] = {}
        self.sequence(")", lambda: self._argument(arguments, attributes))
        attrs = self._call_attributes(callee, attributes, start)
        if isinstance(callee, Op) and callee.num_inputs not in (-1, len(arguments)):
            self.fail_since(start, f"{callee.name} takes {_count(callee.num_inputs)}, not {len(arguments)}")
        if isinstance(callee, Constructor) and len(callee.inputs) != len(arguments):
            self.fail_since(
                start,
                f"constructor {callee.name_hint} takes {_count(len(callee.inputs))}, not {len(arguments)}",
            )
        return Call(callee, arguments, attrs, types, self.span_since(start))

    def _argument(self, arguments: list[RelayExpr], attributes: dict[str, Any]) -> None:
        if self.at_attribute():
            self.attribute(attributes)
        else:
            arguments.append(self.expression())

    def at_attribute(self) -> bool:
        """True at ``name=``."""
        return self.kind_after() == "=" and (self.at("string") or is_word(self.current))

    def attribute(self, attributes: dict[str, Any]) -> None:
        """``name=value``, put among the others."""
        token = self.advance()
        name = self.string(token, token.text) if token.kind == "string" else token.text
        self.expect("=")
        if name in attributes:
            self.fail(token, f"the attribute {name} occurs twice")
        attributes[name] = self.value()

    def _call_attributes(self, callee: RelayExpr, attributes: dict[str, Any], start: int) -> Attrs | None:
        """Attributes of the class that the operator has, or that the text names."""
        key = attributes.pop(_TYPE_KEY, None)
        if key == "DictAttrs":
            return DictAttrs(attributes)
        attrs_class: Any = callee.get_attr("AttrsClass") if isinstance(callee, Op) else None
        if key is not None:
            attrs_class = ATTRIBUTE_CLASSES.get(str(key))
            if attrs_class is None:
                self.fail_since(start, f"there is no class of attributes {key!r}")
        if attrs_class is None:
            if attributes:
                named = callee.name if isinstance(callee, Op) else "this function"
                self.fail_since(start, f"{named} has no attribute {next(iter(attributes))!r}; it has none")
            return None
        name = callee.name if isinstance(callee, Op) else "the call"
        try:
            made: Attrs = attrs_class.from_mapping(attributes, name)
        except TextFormError:
            raise
        except (TilewrightError, TypeError, ValueError, AttributeError, LookupError) as error:
            self.fail_since(start, getattr(error, "message", "") or f"{name}: {error}")
        return made

    # Atoms

    def _atom(self) -> RelayExpr:
        token = self.current
        if token.kind == "local":
            self.advance()
            return self._variable(token)
        if token.kind == "temporary":
            self.advance()
            return self._graph_node(token)
        if token.kind == "global":
            self.advance()
            return self.global_var(self.name(token))
        if token.kind == "(":
            return self._parenthesised()
        if is_word(token):
            return self._word(token)
        return self.fail(token, f"expected an expression, found {shown(token)}")

    def _variable(self, token: Token) -> Var:
        name = self.name(token)
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        known = [each for scope in self.scopes for each in scope]
        return self.fail(token, f"the variable {token.text} is not defined here{_nearest(name, known, '%')}")

    def _graph_node(self, token: Token) -> RelayExpr:
        for scope in reversed(self.temporaries):
            if token.text in scope:
                return scope[token.text]
        found = self.all_temporaries.get(token.text)
        if found is None:
            self.fail(token, f"{token.text} is not defined before this use")
        return found

    def global_var(self, name: str) -> GlobalVar:
        """The one variable for a global name."""
        if not name:
            self.fail(self.tokens[self.position - 1], "a global name has at least one letter")
        found = self.global_vars.get(name)
        if found is None:
            found = self.global_vars[name] = GlobalVar(name)
        return found

    def _parenthesised(self) -> RelayExpr:
        """A tuple, an expression or a block in parentheses."""
        start = self.expect("(").start
        if self.accept(")"):
            return Tuple((), self.span_since(start))
        if self.at_statement():
            result = self.body()
            self.expect(")")
            return result
        first = self.expression()
        if self.accept(")"):
            return first
        self.expect(",", "',' or ')'")
        rest = self.sequence(")", self.expression)
        return Tuple((first, *rest), self.span_since(start))

    def _word(self, token: Token) -> RelayExpr:
        """A keyword, a constructor or an operator."""
        start = token.start
        if token.kind == "fn":
            self.advance()
            return self.function(start)
        if token.kind == "if":
            return self._if()
        if token.kind == "match":
            return self._match()
        if token.kind == "let":
            return self.body(sequences=False)
        if token.kind == "meta":
            return self._meta_expression()
        self.advance()
        if token.kind in ("True", "False"):
            return Constant(ndarray.array(_BOOLEANS[token.kind]), self.span_since(start))
        if token.kind in _REFERENCES and self.at("("):
            return self._reference(token)
        if token.text in self.constructors:
            return self.constructors[token.text]
        found = Op.registry.get(token.text)
        if found is None or token.text.startswith("tir."):
            names = [name for name in (*Op.registry, *self.constructors) if not name.startswith("tir.")]
            self.fail(
                token, f"there is no operator or constructor {token.text!r}{_nearest(token.text, names, '')}"
            )
        return found

    def _meta_expression(self) -> RelayExpr:
        start = self.current.start
        found = self.meta_reference()
        if not isinstance(found, RelayExpr):
            self.fail_since(
                start, f"the meta data holds {type(found).__name__} where an expression is expected"
            )
        if isinstance(found, Constant) and found.span is None:
            # One constant stays one, however often the text refers to it.
            placed = self.placed_constants.get(found)
            if placed is None:
                placed = self.placed_constants[found] = found.replace(span=self.span_since(start))
            return placed
        return found

    def _reference(self, token: Token) -> RelayExpr:
        self.expect("(")
        arguments = self.sequence(")", self.expression)
        maker, count = _REFERENCES[token.kind]
        if len(arguments) != count:
            self.fail_since(token.start, f"{token.text} takes {_count(count)}, not {len(arguments)}")
        made: RelayExpr = maker(*arguments, self.span_since(token.start))
        return made

    # Functions and branches

    def function(self, start: int) -> Function:
        """Type parameters, parameters with attributes, the type of the result, and the body."""
        self.type_scopes.append({})
        self.scopes.append({})
        type_parameters = self.type_parameters()
        self.expect("(")
        parameters: list[Var] = []
        attributes: dict[str, Any] = {}
        self.sequence(")", lambda: self._parameter(parameters, attributes))
        result = self.type() if self.accept("->") else None
        body = self.braced()
        self.scopes.pop()
        self.type_scopes.pop()
        return Function(parameters, body, result, type_parameters, attributes, self.span_since(start))

    def _parameter(self, parameters: list[Var], attributes: dict[str, Any]) -> None:
        if self.at_attribute():
            self.attribute(attributes)
        else:
            parameters.append(self._declared())

    def _if(self) -> RelayExpr:
        start = self.expect("if").start
        self.expect("(", "the condition in parentheses")
        condition = self.expression()
        self.expect(")")
        chosen = self.braced()
        self.expect("else")
        other = self.braced()
        return If(condition, chosen, other, self.span_since(start))

    def _match(self) -> RelayExpr:
        start = self.expect("match").start
        complete = not self.accept("?")
        self.expect("(", "the value in parentheses")
        data = self.expression()
        self.expect(")")
        self.expect("{")
        clauses = self.sequence("}", self._clause)
        return Match(data, clauses, complete, self.span_since(start))

    def _clause(self) -> Clause:
        self.scopes.append({})
        pattern = self._pattern()
        self.expect("=>")
        result = self.braced() if self.at("{") else self.body(sequences=False)
        self.scopes.pop()
        return Clause(pattern, result)

    def _pattern(self) -> Pattern:
        token = self.current
        if token.kind == "local":
            return PatternVar(self._declared())
        if self.accept("_"):
            return PatternWildcard()
        if self.accept("("):
            return PatternTuple(self.sequence(")", self._pattern))
        constructor = self.constructors.get(token.text)
        if constructor is None:
            if is_word(token):
                hint = _nearest(token.text, list(self.constructors), "")
                self.fail(token, f"there is no constructor {token.text!r}{hint}")
            self.fail(token, f"expected a pattern, found {shown(token)}")
        self.advance()
        patterns = self.sequence(")", self._pattern) if self.accept("(") else []
        if len(patterns) != len(constructor.inputs):
            self.fail_since(
                token.start,
                f"constructor {token.text} takes {_count(len(constructor.inputs))}, the pattern has {len(patterns)}",
            )
        return PatternConstructor(constructor, patterns)


_BOOLEANS = {"True": True, "False": False}


def _is_empty(value: RelayExpr) -> bool:
    """True for a constructor of no arguments, which is called without parentheses."""
    return isinstance(value, Constructor) and not value.inputs


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def _nearest(name: str, known: Sequence[str], prefix: str) -> str:
    """A hint at the known name that looks most like this one."""
    found = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {prefix}{found[0]}?" if found else ""
