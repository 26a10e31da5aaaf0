"""The public names of the levels stand where scripts look for them."""

from functools import reduce

import pytest

import tilewright

NAMES = {
    "tir": """
        ExprOp EqualOp NotEqualOp ConstExpr BinaryOpExpr CmpExpr LogicalExpr Var SizeVar IterVar CommReducer
        Reduce FloatImm IntImm StringImm Cast Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT
        GE And Or Not Select Load BufferLoad ProducerLoad Ramp Broadcast Shuffle CallEffectKind Call Let Any
        Stmt LetStmt AssertStmt ForKind For While Store BufferStore BufferRealize ProducerStore Allocate
        AttrStmt ProducerRealize SeqStmt IfThenElse Evaluate Prefetch BufferRegion MatchBufferRegion Block
        BlockRealize stmt_seq stmt_list call_packed call_intrin call_pure_extern call_extern
        call_llvm_intrin call_llvm_pure_intrin ret any all trace min_value max_value exp exp2 exp10 erf tanh
        sigmoid log log2 log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh atan2 sqrt rsqrt
        clz floor ceil trunc abs round nearbyint nextafter hypot copysign ldexp isnan isfinite isinf power
        popcount q_multiply_shift fmod if_then_else div indexdiv indexmod truncdiv truncmod floordiv
        floormod comm_reducer Layout BijectiveLayout layout bijective_layout PrimFunc Buffer decl_buffer
        DataProducer sum min max const
    """,
    "tir.ir_builder": """
        WithScope BufferVar IRBuilder create
    """,
    "tir.generic": """
        add subtract multiply divide floordiv cast
    """,
    "tir.buffer": """
        Buffer decl_buffer DataProducer
    """,
    "tir.stmt_functor": """
        ir_transform post_order_visit substitute
    """,
    "tir.transform": """
        Apply Filter InjectPrefetch StorageFlatten TextureFlatten InjectCopyIntrin CoProcSync LiftAttrScope
        LoopPartition VectorizeLoop InjectVirtualThread InjectDoubleBuffer StorageRewrite UnrollLoop
        RemoveNoOp BF16Legalize BF16Promote BF16CastElimination BF16TypeLowering RewriteUnsafeSelect
        Simplify InstrumentBoundCheckers LowerCustomDatatypes MakePackedAPI MakeUnpackedAPI SplitHostDevice
        DecorateDeviceScope SkipAssert ThreadSync LowerThreadAllreduce InferFragment LowerWarpMemory
        LowerTVMBuiltin LegalizePackedCalls LowerIntrin LowerDeviceStorageAccessInfo CombineContextCall
        NarrowDataType VerifyMemory HoistIfThenElse LowerInitBlock PlanAndUpdateBufferAllocationLocation
        ConvertBlocksToOpaque CompactBufferAllocation LowerMatchBuffer FlattenBuffer UnifyThreadBinding
        MergeDynamicSharedMemoryAllocations ConvertForLoopsToSerial PrimFuncPass prim_func_pass
    """,
    "tir.analysis": """
        expr_deep_equal verify_ssa verify_memory verify_gpu_code get_block_access_region
        get_block_read_write_region calculate_workspace_bytes detect_buffer_access_lca
    """,
    "ir": """
        Node SourceName Span EnvFunc load_json save_json structural_equal assert_structural_equal
        structural_hash IRModule Op register_op_attr register_intrin_lowering Attrs DictAttrs make_node Type
        TypeKind PrimType PointerType TypeVar GlobalTypeVar TupleType TypeConstraint FuncType IncompleteType
        RelayRefType BaseExpr PrimExpr RelayExpr GlobalVar Range Array Map TensorType Constructor TypeData
        TypeCall TypeRelation
    """,
    "ir.diagnostics": """
        get_renderer override_renderer DiagnosticLevel Diagnostic DiagnosticRenderer DiagnosticContext
    """,
    "transform": """
        PassInfo PassContext Pass ModulePass Sequential module_pass PrintIR
    """,
    "instrument": """
        PassInstrument pass_instrument PassTimingInstrument
    """,
    "error": """
        InternalError RPCError OpError OpNotImplemented OpAttributeRequired OpAttributeInvalid
        OpAttributeUnImplemented DiagnosticError TVMError
    """,
}


@pytest.mark.parametrize("module", NAMES)
def test_names(module: str) -> None:
    """Every name of the reference interface is there."""
    found = reduce(getattr, module.split("."), tilewright)
    missing = [name for name in NAMES[module].split() if not hasattr(found, name)]
    assert missing == []
