"""Primitive expressions: the values that loops and tensor expressions compute.

Semantics, for every pass, code generator and interpreter:

* An expression has a data type with lanes; a binary node's operands have the same type, its result too (a comparison
  gives bool with the same lanes).
* Integer arithmetic wraps around. Index arithmetic (int32 and int64) is assumed not to overflow; the simplifier relies
  on it.
* ``Div`` and ``Mod`` truncate towards zero, ``FloorDiv`` and ``FloorMod`` round down. Division by zero is undefined.
* ``And`` and ``Or`` do not promise to skip their second operand. ``Select`` evaluates all its operands; the intrinsic
  ``tir.if_then_else`` evaluates only the branch that is taken.
* Floating-point expressions are not reassociated by the simplifier. A product followed by a sum may become one FMA.
* Expressions have no side effects, except for calls whose operator says so.

``a == b`` returns an ``EqualOp``: an expression where one is expected, an identity test as a condition. Nodes hash by
identity.
"""

from tilewright.ir.expr_arith import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryLogicalExpr,
    BinaryOpExpr,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
)
from tilewright.ir.expr_axis import CommReducer, IterVar, Range, Reduce
from tilewright.ir.expr_base import (
    ConstExpr,
    EqualOp,
    ExprLike,
    ExprOp,
    FloatImm,
    IntImm,
    ManyElements,
    NotEqualOp,
    PrimExpr,
    PrimExprWithOp,
    SizeVar,
    StringImm,
    Var,
    wrap_integer,
)
from tilewright.ir.expr_memory import (
    Any,
    Broadcast,
    BufferLoad,
    Call,
    DataProducer,
    Let,
    Load,
    ProducerLoad,
    Ramp,
    Shuffle,
    const_value,
    is_const,
)

__all__ = [
    "Add",
    "And",
    "Any",
    "BinaryLogicalExpr",
    "BinaryOpExpr",
    "Broadcast",
    "BufferLoad",
    "Call",
    "Cast",
    "CmpExpr",
    "CommReducer",
    "ConstExpr",
    "DataProducer",
    "Div",
    "EQ",
    "EqualOp",
    "ExprLike",
    "ExprOp",
    "ManyElements",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "GE",
    "GT",
    "IntImm",
    "IterVar",
    "LE",
    "LT",
    "Let",
    "Load",
    "LogicalExpr",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "NE",
    "Not",
    "NotEqualOp",
    "Or",
    "PrimExpr",
    "PrimExprWithOp",
    "ProducerLoad",
    "Ramp",
    "Range",
    "Reduce",
    "Select",
    "Shuffle",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
    "const_value",
    "is_const",
    "wrap_integer",
]
