"""Expression nodes: what their constructors check, and equality."""

import pytest

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    EqualOp,
    FloatImm,
    IntImm,
    IterVar,
    Let,
    Load,
    Not,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Var,
    const_value,
    is_const,
)
from tilewright.ir.op import CallEffectKind
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import ExpressionError, OpError

x, y = Var("x"), Var("y")


def test_equal_is_expression_and_identity() -> None:
    """``a == b`` is an expression where one is asked for, and an identity test as a condition."""
    made = x == y
    assert isinstance(made, EqualOp)
    assert not made and bool(x == x)
    assert str(made.asobject()) == "x == y"
    assert (x != y) and bool(x == x)
    assert x in [y, x] and {x: 1}[x] == 1
    assert (operators.const(3) == 3) and (operators.const(3) != 4)


def test_no_truth_value() -> None:
    """An expression as a condition of Python is an error that names what to use."""
    with pytest.raises(ExpressionError, match=r"tir\.all"):
        bool(x < y)
    with pytest.raises(ExpressionError, match=r"tir\.if_then_else"):
        1 if x + y else 2


def test_operands_must_have_one_type() -> None:
    """The node's constructor does not promote: it names both types."""
    with pytest.raises(ExpressionError, match="operands of Add have types int32 and float32"):
        Add(x, FloatImm("float32", 1))
    with pytest.raises(ExpressionError, match="both must be bool"):
        And(x, x < y)
    with pytest.raises(ExpressionError, match="must be bool"):
        Not(x)


def test_immediates() -> None:
    """Constants of a type hold values of that type and convert to Python numbers."""
    assert IntImm("uint8", 256).value == 0 and IntImm("int8", 128).value == -128
    assert int(IntImm("int32", 5)) == 5 and list(range(IntImm("int32", 2))) == [0, 1]
    assert float(FloatImm("float32", 1.5)) == 1.5
    assert bool(IntImm("bool", 1)) and not IntImm("int32", 0)
    with pytest.raises(ExpressionError, match="cannot have type float32"):
        IntImm("float32", 1)
    with pytest.raises(ExpressionError, match="cannot have type int32"):
        FloatImm("int32", 1.0)


def test_strings_are_equal_by_value() -> None:
    """A string constant equals the string and hashes like it."""
    assert StringImm("a") == "a" and StringImm("a") == StringImm("a") and StringImm("a") != "b"
    assert {StringImm("a"): 1}["a"] == 1


def test_variables() -> None:
    """A variable is equal to itself alone, and a pointer says what it points to."""
    assert Var("x") is not Var("x") and hash(x) == hash(x)
    pointer = Var("p", PointerType(PrimType("float32"), "shared"))
    assert (
        pointer.dtype == "handle" and pointer.storage_scope == "shared" and pointer.element_type == "float32"
    )
    assert Var("q", "handle").storage_scope == "global" and Var("q", "handle").element_type is None
    assert isinstance(SizeVar("n", "int64"), Var) and SizeVar("n", "int64").dtype == "int64"


def test_ranges() -> None:
    """A range from its ends, from one end, and from start and extent."""
    assert (Range(2, 10).extent.value, Range(8).min.value) == (8, 0)  # type: ignore[attr-defined]
    made = Range.from_min_extent(x, 4)
    assert made.min is x and str(made) == "range(min=x, ext=4)"


def test_axes() -> None:
    """The domain of an axis is a range or a pair; its variable has the domain's type."""
    axis = IterVar((0, operators.const(4, "int64")), "i", IterVar.DataPar)
    assert axis.var.name == "i" and axis.dtype == "int64"
    assert str(axis + 1) == "i + T.int64(1)"
    with pytest.raises(ExpressionError, match="pair"):
        IterVar(5, "i", 0)  # type: ignore[arg-type]


def test_vectors() -> None:
    """Ramps and broadcasts make vectors of scalars of two lanes or more."""
    assert Ramp(x, 2, 4).dtype == "int32x4" and Broadcast(x, 8).dtype == "int32x8"
    assert Ramp(operators.const(0, "int64"), 1, 4).stride.dtype == "int64"
    with pytest.raises(ExpressionError, match="two lanes or more"):
        Ramp(x, 1, 1)
    with pytest.raises(ExpressionError, match="only a scalar"):
        Broadcast(Broadcast(x, 4), 2)
    with pytest.raises(ExpressionError, match="integer"):
        Ramp(Var("f", "float32"), 1, 4)


def test_shuffle() -> None:
    """Lanes are picked out of all vectors together; a lane that is not there is an error."""
    assert Shuffle([Broadcast(x, 4), Broadcast(y, 4)], [0, 4, 7]).dtype == "int32x3"
    with pytest.raises(ExpressionError, match="no lane 8"):
        Shuffle([Broadcast(x, 4), Broadcast(y, 4)], [8])


def test_select_and_let() -> None:
    """Both values of a select, and a variable and its value, have one type."""
    assert Select(x < y, x, y).dtype == "int32"
    with pytest.raises(ExpressionError, match="int32 and float32"):
        Select(x < y, x, FloatImm("float32", 1))
    with pytest.raises(ExpressionError, match="its value float32"):
        Let(x, FloatImm("float32", 1), x)
    assert Let(x, 1, x * FloatImm("float32", 2)).dtype == "float32"


def test_casts_keep_lanes() -> None:
    """A cast node does not change the number of lanes."""
    with pytest.raises(ExpressionError, match="lanes"):
        Cast("float32x4", x)


def test_loads() -> None:
    """A load is as wide as its index; without a predicate it is always on."""
    buffer = decl_buffer((16, 16), "float32")
    assert BufferLoad(buffer, [x, Ramp(y, 1, 4)]).dtype == "float32x4"
    load = Load("float32", buffer.data, x)
    assert is_const(load.predicate, 1)


def test_reduce_checks_its_parts() -> None:
    """The number of sources, of the combiner's values and of the result agree."""
    axis = IterVar((0, 4), "k", IterVar.CommReduce)
    a, b = Var("a"), Var("b")
    combiner = CommReducer([a], [b], [a + b], [operators.const(0)])
    assert Reduce(combiner, [axis.var], [axis], True, 0).dtype == "int32"
    with pytest.raises(ExpressionError, match="no value number 1"):
        Reduce(combiner, [axis.var], [axis], True, 1)
    with pytest.raises(ExpressionError, match="takes 1 values"):
        Reduce(combiner, [axis.var, axis.var], [axis], True, 0)


def test_calls() -> None:
    """A call finds its operator by name with or without the level; an unknown one is an error."""
    call = Call("float32", "tir.exp", [FloatImm("float32", 1)])
    assert call.op is Call("float32", "exp", [FloatImm("float32", 1)]).op
    assert call.effect == CallEffectKind.Pure
    with pytest.raises(OpError, match="nonsense"):
        Call("int32", "tir.nonsense", [])


def test_constants_are_recognised() -> None:
    """``is_const`` looks through broadcasts, ``const_value`` gives integers alone."""
    assert is_const(Broadcast(1, 4), 1) and not is_const(x, 1) and is_const(FloatImm("float32", 2), 2)
    assert (
        const_value(IntImm("int32", 7)) == 7
        and const_value(x) is None
        and const_value(FloatImm("float32", 1)) is None
    )


def test_frozen() -> None:
    """No pass can change a node in place."""
    with pytest.raises(AttributeError, match="frozen"):
        (x + y).a = y
