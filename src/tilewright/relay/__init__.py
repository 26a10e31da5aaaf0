"""The graph level: a typed functional language for models, its passes and its executors."""

import importlib

from tilewright.ir.base import RelayExpr as Expr
from tilewright.ir.expr import Any
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType, is_dynamic, scalar_type
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    ShapeVar,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type import (
    RelayRefType as RefType,
)
from tilewright.ir.type_relation import TypeRelation
from tilewright.relay import (
    adt,
    analysis,
    backend,
    build_module,
    data_dep_optimization,
    dataflow_pattern,
    expr,
    expr_functor,
    function,
    loops,
    parser,
    prelude,
    printer,
    qnn,
    quantize,
    scope_builder,
    transform,
    type_functor,
)
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
from tilewright.relay.analysis.well_formed import verify_function
from tilewright.relay.backend import contrib as _contrib
from tilewright.relay.backend import vm
from tilewright.relay.backend.specialization import SpecializingSession
from tilewright.relay.build_module import build, create_executor, optimize
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
    var,
)
from tilewright.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor, bind
from tilewright.relay.from_text import fromtext, parse, parse_expr
from tilewright.relay.function import Function
from tilewright.relay.op import annotation, contrib, image, nn, random, vision
from tilewright.relay.op.algorithm import *  # noqa: F403
from tilewright.relay.op.annotation.debug import debug
from tilewright.relay.op.reduce import *  # noqa: F403
from tilewright.relay.op.tensor import *  # noqa: F403
from tilewright.relay.op.transform import *  # noqa: F403
from tilewright.relay.parser import SpanCheck
from tilewright.relay.plain_constants import const
from tilewright.relay.prelude import Prelude
from tilewright.relay.printer import astext, pretty_print
from tilewright.relay.scope_builder import ScopeBuilder
from tilewright.relay.transform.build_config import build_config
from tilewright.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor
from tilewright.runtime.params import load_param_dict, save_param_dict
from tilewright.support.span import SourceName, Span

expr.WHOLE_TEXT.fill(astext)
expr.SHORT_TEXT.fill(pretty_print)
function.VERIFIER.fill(verify_function)

_ON_FIRST_USE = ("frontend", "testing")
"""Modules that import other packages, or that are for tests: loaded on first use."""


def __getattr__(name: str) -> object:
    if name in _ON_FIRST_USE:
        return importlib.import_module(f"tilewright.relay.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
