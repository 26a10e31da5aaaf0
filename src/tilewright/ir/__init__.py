"""What all levels share: expressions, types, operators, modules, structural equality, passes, diagnostics."""

from tilewright.ir import diagnostics, instrument, intrinsics, transform
from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.attrs import Attrs, DictAttrs
from tilewright.ir.base import BaseExpr, RelayExpr
from tilewright.ir.container import Array, Map
from tilewright.ir.env_func import EnvFunc
from tilewright.ir.expr import FloatImm, IntImm, PrimExpr, Range
from tilewright.ir.function import BaseFunc, CallingConv
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.make_node import make_node
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op, register_intrin_lowering, register_op_attr
from tilewright.ir.serialize import load_json, save_json
from tilewright.ir.structural import assert_structural_equal, structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TYPE_TEXT as _TYPE_TEXT
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type_relation import TypeRelation
from tilewright.ir.type_text import type_text as _type_text
from tilewright.support.node import Node
from tilewright.support.span import SourceName, Span

_TYPE_TEXT.fill(_type_text)

__all__ = [
    "Array",
    "Attrs",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "Constructor",
    "DictAttrs",
    "EnvFunc",
    "FloatImm",
    "FuncType",
    "GlobalTypeVar",
    "GlobalVar",
    "IRModule",
    "IncompleteType",
    "IntImm",
    "Map",
    "Node",
    "Op",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "RelayExpr",
    "RelayRefType",
    "SourceName",
    "Span",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeData",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "assert_structural_equal",
    "diagnostics",
    "instrument",
    "intrinsics",
    "load_json",
    "make_node",
    "register_intrin_lowering",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]
