"""Types and dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.ir.expr import IntImm, PrimExpr, SizeVar
from tilewright.ir.expr import Var as DimensionVar
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)
from tilewright.relay.parser.stream import is_word, shown
from tilewright.relay.parser.tokens import Source, TextFormError
from tilewright.relay.parser.values import ValueParser
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError, TilewrightError

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": operators.floordiv,
    "floormod": operators.floormod,
    "min": operators.minimum,
    "max": operators.maximum,
}
_SIZE = "size_"


def _dtype(name: str) -> DataType | None:
    """The data type of this name, if there is one."""
    try:
        return DataType(name)
    except ExpressionError:
        return None


class TypeParser(ValueParser):
    """Reads types. ``type_names`` are the types that the module defines."""

    def __init__(self, source: Source, meta_table: Mapping[str, Sequence[Any]] | None = None) -> None:
        super().__init__(source, meta_table)
        self.type_names: dict[str, GlobalTypeVar] = {}
        self.type_scopes: list[dict[str, TypeVar]] = [{}]
        self.dimensions: dict[tuple[str, str], DimensionVar] = {}

    def type(self) -> Type:
        """A type."""
        token = self.current
        if self.accept("("):
            return self._tuple_type()
        if self.accept("_"):
            return IncompleteType()
        if token.kind == "fn":
            return self._function_type()
        if token.kind == "Tensor":
            return self._tensor_type()
        if token.kind == "ref":
            self.advance()
            self.expect("(")
            value = self.type()
            self.expect(")")
            return RelayRefType(value)
        if token.kind == "meta":
            found = self.meta_reference()
            if not isinstance(found, Type):
                self.fail(token, f"the meta data holds {type(found).__name__} where a type is expected")
            return found
        return self._named_type()

    def _tuple_type(self) -> Type:
        """A tuple, or a type in parentheses: the comma decides."""
        if self.accept(")"):
            return TupleType(())
        first = self.type()
        if self.accept(")"):
            return first
        self.expect(",", "',' or ')'")
        return TupleType((first, *self.sequence(")", self.type)))

    def _function_type(self) -> Type:
        self.expect("fn")
        self.type_scopes.append({})
        parameters = self.type_parameters()
        self.expect("(")
        arguments = self.sequence(")", self.type)
        self.expect("->")
        result = self.type()
        self.type_scopes.pop()
        return FuncType(arguments, result, parameters)

    def _tensor_type(self) -> Type:
        start = self.expect("Tensor").start
        self.expect("[")
        self.expect("(", "the shape in parentheses")
        shape = self.sequence(")", self.dimension)
        self.expect(",")
        dtype = _dtype(self.expect_word("an element type").text)
        self.expect("]")
        if dtype is None:
            self.fail_since(start, "this is not an element type")
        try:
            return TensorType(shape, dtype)
        except TilewrightError as error:
            self.fail_since(start, error.message)

    def _named_type(self) -> Type:
        """A type variable, a type that the module defines, or an element type: a tensor without dimensions."""
        token = self.expect_word("a type")
        head: Type | None = self._type_variable(token.text) or self.type_names.get(token.text)
        if head is None:
            dtype = _dtype(token.text)
            if dtype is None:
                self.fail(token, f"the type {token.text!r} is not defined")
            return TensorType((), dtype)
        if self.accept("["):
            return TypeCall(head, self.sequence("]", self.type))
        return TypeCall(head, ()) if isinstance(head, GlobalTypeVar) else head

    def _type_variable(self, name: str) -> TypeVar | None:
        return next((scope[name] for scope in reversed(self.type_scopes) if name in scope), None)

    def type_parameters(self) -> list[TypeVar]:
        """``[A, B]``, put into the innermost scope; nothing where there are none."""
        return self.sequence("]", self._type_parameter) if self.accept("[") else []

    def _type_parameter(self) -> TypeVar:
        token = self.expect_word("a type parameter")
        kind = TypeKind.Type
        if self.accept(":"):
            name = self.expect_word("the kind of a type parameter")
            if name.text not in TypeKind.__members__:
                self.fail(
                    name,
                    f"there is no type kind {name.text!r}; there are {', '.join(TypeKind.__members__)}",
                )
            kind = TypeKind[name.text]
        scope = self.type_scopes[-1]
        if token.text in scope:
            self.fail(token, f"the type parameter {token.text} occurs twice")
        scope[token.text] = made = TypeVar(token.text, kind)
        return made

    # Dimensions

    def dimension(self) -> PrimExpr:
        """A number, an unknown, or an expression of variables."""
        start = self.current.start
        try:
            return self._sum()
        except TextFormError:
            raise
        except (TilewrightError, ZeroDivisionError, OverflowError) as error:
            self.fail_since(start, f"this is not a dimension: {getattr(error, 'message', error)}")

    def _sum(self) -> PrimExpr:
        left = self._product()
        while self.current.kind in ("+", "-"):
            add = self.advance().kind == "+"
            right = self._product()
            left = operators.add(left, right) if add else operators.subtract(left, right)
        return left

    def _product(self) -> PrimExpr:
        left = self._factor()
        while self.accept("*"):
            left = operators.multiply(left, self._factor())
        return left

    def _factor(self) -> PrimExpr:
        token = self.current
        if self.accept("?"):
            return UnknownDimension()
        if self.accept("("):
            inner = self._sum()
            self.expect(")")
            return inner
        if token.kind == "number" or token.kind == "-":
            negative = self.accept("-")
            if not self.at("number"):
                self.fail(self.current, f"expected a number, found {shown(self.current)}")
            value = self.number(negative)
            if value.dtype.kind == "f":
                self.fail(token, "a dimension is an integer")
            return IntImm(str(value.dtype), int(value.item()))
        if token.kind == "meta":
            found = self.meta_reference()
            if not isinstance(found, PrimExpr):
                self.fail(token, f"the meta data holds {type(found).__name__} where a dimension is expected")
            return found
        if not is_word(token):
            self.fail(token, f"expected a dimension, found {shown(token)}")
        return self._named_dimension()

    def _named_dimension(self) -> PrimExpr:
        """A function of dimensions, or a variable: one for each name and type in the whole text."""
        token = self.advance()
        if token.text in _FUNCTIONS and self.accept("("):
            arguments = self.sequence(")", self._sum)
            if len(arguments) != 2:
                self.fail_since(token.start, f"{token.text} takes two dimensions, not {len(arguments)}")
            return _FUNCTIONS[token.text](*arguments)  # type: ignore[no-any-return]
        kind = "int32"
        if self.accept(":"):
            annotation = self.expect_word("the type of a dimension")
            kind = annotation.text
            dtype = _dtype(kind.removeprefix(_SIZE))
            if dtype is None or not dtype.is_integral:
                self.fail(annotation, f"{kind!r} is not a type of dimensions")
        found = self.dimensions.get((token.text, kind))
        if found is None:
            maker = SizeVar if kind.startswith(_SIZE) else DimensionVar
            found = self.dimensions[token.text, kind] = maker(token.text, kind.removeprefix(_SIZE))
        return found
