"""Arithmetic on complex tensors, whose parts are tensors of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.torch.complex_pair import COMPLEX_TYPES, ComplexPair, is_complex_type
from tilewright.relay.frontend.torch.node import Number, Operand, TorchNode
from tilewright.relay.frontend.torch.ops import elementwise, padding, views
from tilewright.relay.frontend.torch.ops.joins import broadcast_tensors
from tilewright.relay.frontend.torch.registry import complex_converter, converter, find_converter

Complex = ComplexPair | Operand
"""A tensor or number that may be complex."""
Part = Expr | None
"""The real or the imaginary part of a tensor; None for zero, which is not computed with."""
Parts = tuple[Part, Part]


# Parts


def parts_of(node: TorchNode, *given: Complex) -> list[Parts]:
    """Operands in the element type of their result."""
    pairs = [one if isinstance(one, ComplexPair) else ComplexPair(one, 0) for one in given]
    dtype = node.floating_dtype(node.result_dtype(*(pair.real for pair in pairs)))

    def fitted(part: Operand) -> Part:
        return node.cast(part, dtype) if isinstance(part, Expr) or part != 0 else None

    return [(fitted(pair.real), fitted(pair.imag)) for pair in pairs]


def plus(one: Part, other: Part) -> Part:
    """The sum of two parts."""
    return other if one is None else one if other is None else relay.add(one, other)


def minus(one: Part, other: Part) -> Part:
    """The difference of two parts."""
    return one if other is None else relay.negative(other) if one is None else relay.subtract(one, other)


def times(one: Part, other: Part) -> Part:
    """The product of two parts."""
    return None if one is None or other is None else relay.multiply(one, other)


def squared(parts: Parts) -> Expr:
    """The square of the magnitude."""
    found = plus(times(parts[0], parts[0]), times(parts[1], parts[1]))
    assert found is not None
    return found


def joined(node: TorchNode, real: Part, imag: Part) -> ComplexPair:
    """A complex tensor of parts that broadcast to one shape."""
    example = real if real is not None else imag
    assert example is not None
    whole = [relay.zeros_like(example) if part is None else part for part in (real, imag)]
    if node.shape(whole[0]) != node.shape(whole[1]) or None in node.shape(example):
        whole = broadcast_tensors(node, whole)
    return ComplexPair(*whole)


def as_complex(node: TorchNode, given: Complex) -> ComplexPair:
    """A tensor as a complex one."""
    return joined(node, *parts_of(node, given)[0])


# To and from floats


@converter("aten::view_as_complex", "aten::view_as_complex_copy")
def view_as_complex(node: TorchNode, input: Expr) -> ComplexPair:
    """The last axis holds the parts."""
    return ComplexPair(*(views.select(node, input, -1, place) for place in range(2)))


@converter("aten::complex")
def complex_of_parts(node: TorchNode, real: Expr, imag: Expr) -> ComplexPair:
    """A complex tensor of its parts."""
    return joined(node, *node.promoted(real, imag))


@converter("aten::polar")
def polar(node: TorchNode, abs: Expr, angle: Expr) -> ComplexPair:
    """A complex tensor of magnitudes and angles."""
    size, turn = node.promoted(abs, angle)
    return joined(node, relay.multiply(size, relay.cos(turn)), relay.multiply(size, relay.sin(turn)))


@complex_converter("aten::view_as_real", "aten::view_as_real_copy")
def view_as_real(node: TorchNode, input: ComplexPair) -> Expr:
    """The parts along a new last axis."""
    return views.stack(node, list(input.tensors), -1)


@complex_converter("aten::real")
def real(node: TorchNode, input: ComplexPair) -> Operand:
    """The real part."""
    return input.real


@complex_converter("aten::imag")
def imag(node: TorchNode, input: ComplexPair) -> Operand:
    """The imaginary part."""
    return input.imag


@complex_converter("aten::is_complex")
def is_complex(node: TorchNode, input: ComplexPair) -> bool:
    """Whether the elements are complex."""
    return True


@complex_converter("aten::is_floating_point")
def is_floating_point(node: TorchNode, input: ComplexPair) -> bool:
    """Complex numbers are not, for PyTorch."""
    return False


@complex_converter("aten::to", "aten::_to_copy", "prims::convert_element_type")
def to(
    node: TorchNode,
    input: Complex | None = None,
    dtype: str | None = None,
    a: Complex | None = None,
    **_: Any,
) -> Complex:
    """In another element type; of complex numbers as floats the real part is left."""
    given = input if input is not None else a
    assert given is not None
    if dtype is None:
        return given
    if not is_complex_type(dtype):
        return node.cast(given.real if isinstance(given, ComplexPair) else given, dtype)
    kind = COMPLEX_TYPES[dtype]
    return as_complex(node, given).each(lambda part: node.cast(part, kind))


@complex_converter("aten::zeros", "aten::ones", "aten::full", "aten::empty", "aten::new_zeros", "aten::new_ones",
                   "aten::new_full", "aten::scalar_tensor")  # fmt: skip
def filled(node: TorchNode, dtype: str | None = None, **arguments: Any) -> ComplexPair:
    """A complex number everywhere; of a known type, or in the type of a complex tensor."""
    convert = find_converter(node.op_type.partition(".")[0])
    assert convert is not None
    imag: Operand = 0
    for key, given in arguments.items():
        if isinstance(given, ComplexPair):
            arguments[key] = given.real
            imag = given.imag if key in ("fill_value", "s") else imag
    made = convert(node, {**arguments, "dtype": COMPLEX_TYPES.get(str(dtype))}, {})
    return joined(node, made, node.cast(imag, node.dtype(made)) if imag else None)


# Arithmetic


@complex_converter("aten::add")
def add(node: TorchNode, input: Complex, other: Complex, alpha: Number = 1) -> ComplexPair:
    """The sum, of the second operand a multiple."""
    (a, b), (c, d) = parts_of(node, input, other if alpha == 1 else mul(node, other, alpha))
    return joined(node, plus(a, c), plus(b, d))


@complex_converter("aten::sub")
def sub(node: TorchNode, input: Complex, other: Complex, alpha: Number = 1) -> ComplexPair:
    """The difference, of the second operand a multiple."""
    (a, b), (c, d) = parts_of(node, input, other if alpha == 1 else mul(node, other, alpha))
    return joined(node, minus(a, c), minus(b, d))


@complex_converter("aten::rsub")
def rsub(node: TorchNode, input: Complex, other: Complex, alpha: Number = 1) -> ComplexPair:
    """The difference the other way round."""
    return sub(node, other, input, alpha)


@complex_converter("aten::mul")
def mul(node: TorchNode, input: Complex, other: Complex) -> ComplexPair:
    """The product."""
    (a, b), (c, d) = parts_of(node, input, other)
    return joined(node, minus(times(a, c), times(b, d)), plus(times(a, d), times(b, c)))


@complex_converter("aten::square")
def square(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The product with itself."""
    return mul(node, input, input)


@complex_converter("aten::div", "aten::true_divide")
def div(node: TorchNode, input: Complex, other: Complex, rounding_mode: str | None = None) -> ComplexPair:
    """The quotient."""
    (a, b), (c, d) = parts_of(node, input, other)
    if d is None and c is not None:
        return joined(node, *(None if part is None else relay.divide(part, c) for part in (a, b)))
    size = squared((c, d))
    above = plus(times(a, c), times(b, d)), minus(times(b, c), times(a, d))
    return joined(node, *(None if part is None else relay.divide(part, size) for part in above))


@complex_converter("aten::reciprocal")
def reciprocal(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """One over the tensor."""
    return div(node, 1, input)


@complex_converter(
    "aten::conj", "aten::_conj", "aten::conj_physical", "aten::_conj_physical", "aten::_conj_copy"
)
def conj(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The imaginary part with the other sign."""
    a, b = parts_of(node, input)[0]
    return joined(node, a, minus(None, b))


@complex_converter("aten::mH", "aten::adjoint", "aten::matrix_H")
def adjoint(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The conjugate of the transposed matrices."""
    return conj(node, ComplexPair(*(views.transpose(node, part, -2, -1) for part in input.tensors)))


@complex_converter("aten::abs", "aten::absolute")
def absolute(node: TorchNode, input: ComplexPair) -> Expr:
    """The magnitude."""
    return relay.sqrt(squared(parts_of(node, input)[0]))


@complex_converter("aten::angle")
def angle(node: TorchNode, input: ComplexPair) -> Expr:
    """The angle in the plane."""
    return elementwise.atan2(node, input.imag, input.real)


@complex_converter("aten::sgn")
def sgn(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The number of magnitude one with the same angle; zero stays."""
    size = absolute(node, input)
    one = node.constant(1.0, size)
    return div(node, input, relay.where(relay.equal(size, node.constant(0.0, size)), one, size))


@complex_converter("aten::exp")
def exp(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The exponential function."""
    a, b = node.promoted(*input.parts)
    return polar(node, relay.exp(a), b)


@complex_converter("aten::log")
def log(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The principal logarithm."""
    return joined(node, relay.log(absolute(node, input)), angle(node, input))


@complex_converter("aten::sqrt")
def sqrt(node: TorchNode, input: ComplexPair) -> ComplexPair:
    """The principal root."""
    turn = angle(node, input)
    return polar(node, relay.sqrt(absolute(node, input)), relay.multiply(turn, node.constant(0.5, turn)))


@complex_converter("aten::pow.Tensor_Scalar", "aten::pow")
def power(node: TorchNode, input: Complex, exponent: Complex) -> ComplexPair:
    """A small whole power as products, any other by the logarithm."""
    if isinstance(exponent, (int, float)) and isinstance(input, ComplexPair) and exponent in (1, 2, 3):
        found = input
        for _ in range(int(exponent) - 1):
            found = mul(node, found, input)
        return found
    return exp(node, mul(node, exponent, log(node, as_complex(node, input))))


@complex_converter("aten::eq")
def eq(node: TorchNode, input: Complex, other: Complex) -> Expr:
    """True where both parts are equal."""
    one, two = as_complex(node, input), as_complex(node, other)
    same = [relay.equal(*node.promoted(a, b)) for a, b in zip(one.parts, two.parts, strict=True)]
    return relay.logical_and(*same)


@complex_converter("aten::ne")
def ne(node: TorchNode, input: Complex, other: Complex) -> Expr:
    """True where a part differs."""
    return relay.logical_not(eq(node, input, other))


# Products of matrices


def _register_product(names: Sequence[str], left: str, right: str) -> None:
    @complex_converter(*names)
    def product(node: TorchNode, **arguments: Any) -> ComplexPair:
        """The products of the parts, as that of complex numbers combines them."""
        found = find_converter(names[0])
        assert found is not None
        (a, b), (c, d) = parts_of(node, arguments[left], arguments[right])

        def of(one: Part, other: Part) -> Part:
            if one is None or other is None:
                return None
            return found(node, {left: one, right: other}, {})  # type: ignore[no-any-return]

        return joined(node, minus(of(a, c), of(b, d)), plus(of(a, d), of(b, c)))


for _names, _right in (
    (("aten::mm",), "mat2"),
    (("aten::bmm",), "mat2"),
    (("aten::matmul", "aten::linalg_matmul", "aten::__matmul__"), "other"),
    (("aten::mv",), "vec"),
    (("aten::outer", "aten::ger"), "vec2"),
):
    _register_product(_names, "input", _right)


@complex_converter("aten::einsum")
def einsum(node: TorchNode, equation: str, tensors: list[Complex], path: Any = None) -> ComplexPair:
    """Sums of products over named axes, of one or two operands."""
    found: Callable[..., Any] | None = find_converter("aten::einsum")
    if found is None or len(tensors) > 2:
        raise node.fail(f"an einsum of {len(tensors)} tensors, some of them complex, is not supported")
    of = found

    def product(*factors: Part) -> Part:
        if any(factor is None for factor in factors):
            return None
        return of(node, {"equation": equation, "tensors": list(factors)}, {})  # type: ignore[no-any-return]

    if len(tensors) == 1:
        return joined(node, *(product(part) for part in parts_of(node, *tensors)[0]))
    (a, b), (c, d) = parts_of(node, *tensors)
    return joined(node, minus(product(a, c), product(b, d)), plus(product(a, d), product(b, c)))


# Joins and choices


@complex_converter("aten::cat", "aten::concat", "aten::concatenate")
def cat(node: TorchNode, tensors: list[Complex], dim: int = 0) -> ComplexPair:
    """Tensors one after another along an axis."""
    given = [as_complex(node, one).parts for one in tensors]
    return ComplexPair(*(views.cat(node, list(parts), dim) for parts in zip(*given, strict=True)))


@complex_converter("aten::stack")
def stack(node: TorchNode, tensors: list[Complex], dim: int = 0) -> ComplexPair:
    """Tensors one after another along a new axis."""
    given = [as_complex(node, one).parts for one in tensors]
    return ComplexPair(*(views.stack(node, list(parts), dim) for parts in zip(*given, strict=True)))


@complex_converter(
    "aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar"
)
def where(node: TorchNode, condition: Expr, input: Complex, other: Complex) -> ComplexPair:
    """One tensor where a condition holds, another where it does not."""
    one, two = as_complex(node, input), as_complex(node, other)
    parts = zip(one.parts, two.parts, strict=True)
    return ComplexPair(*(elementwise.where(node, condition, a, b) for a, b in parts))


@complex_converter("aten::constant_pad_nd", "aten::pad")
def pad(
    node: TorchNode, input: ComplexPair, pad: Any, mode: str = "constant", value: Complex | None = None
) -> ComplexPair:
    """A number around the tensor, or elements of its own."""
    fill = value.parts if isinstance(value, ComplexPair) else (value or 0, 0)
    parts = zip(input.tensors, fill, strict=True)
    return ComplexPair(*(padding.pad(node, part, pad, mode=mode, value=one) for part, one in parts))


@complex_converter("aten::_assert_tensor_metadata")
def nothing(node: TorchNode, **arguments: Any) -> None:
    """Checks of the exporter, which say nothing that the program would compute."""
