"""The graph level: a typed functional language for models, its passes and its executors."""

from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.relay import adt, expr, expr_functor, function, ty
from tilewright.relay.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
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
    TupleWrapper,
    Var,
    const,
    var,
)
from tilewright.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor, bind
from tilewright.relay.function import Function
from tilewright.relay.ty import (
    Any,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    ShapeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeRelation,
    TypeVar,
    is_dynamic,
    scalar_type,
)
