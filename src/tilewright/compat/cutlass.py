"""CUTLASS as TVM's programs name it: the products that it takes are found and taken out of a graph. Its kernels are C++
templates for ``nvcc`` and not in this version; ``relay.build(mod, "cuda")`` has kernels of its own for tensor cores."""

from __future__ import annotations

from typing import Any

from tilewright.compat.not_there import NotInThisVersion
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import Sequential
from tilewright.relay import transform
from tilewright.relay.dataflow_pattern import DFPattern, is_op, wildcard
from tilewright.relay.expr import Call
from tilewright.relay.op.contrib.register import PatternTable, register_pattern_table

NAME = "cutlass"


def make_gelu_pattern(bias_out: DFPattern, out_dtype: str = "float16") -> DFPattern:
    """``x * (0.5 + 0.5 * erf(x / sqrt(2)))``, where the error function is computed in float32."""
    inner = is_op("multiply")(bias_out, wildcard())
    if out_dtype == "float16":
        inner = is_op("cast")(is_op("erf")(is_op("cast")(inner)))
    else:
        inner = is_op("erf")(inner)
    return is_op("multiply")(is_op("add")(is_op("multiply")(inner, wildcard()), wildcard()), bias_out)


def make_gemm_pattern(
    with_bias: bool = True, with_act: str | None = None, out_dtype: str = "float16"
) -> DFPattern:
    """A dense layer with what may follow: a bias, then ``relu`` or ``gelu``."""
    made = is_op("nn.dense")(wildcard(), wildcard())
    if not with_bias:
        return made
    biased = (is_op("add") | is_op("nn.bias_add"))(made, wildcard())
    if with_act is None:
        return biased
    return is_op("nn.relu")(biased) if with_act == "relu" else make_gelu_pattern(biased, out_dtype)


def make_batch_matmul_pattern() -> DFPattern:
    """A product of batches of matrices."""
    return is_op("nn.batch_matmul")(wildcard(), wildcard())


def _product(root: Any) -> Call:
    """The product that a match begins with."""
    while isinstance(root, Call) and isinstance(root.op, Op):
        if root.op.name in ("nn.dense", "nn.batch_matmul"):
            return root
        root = next(one for one in root.args if isinstance(one, Call))
    raise AssertionError("a match has a product")


def check_gemm(call: Call) -> bool:
    """True for a product of float16, which is summed in float16 or float32."""
    product = _product(call)
    operands = [str(one.checked_type.dtype) for one in product.args]
    return operands == ["float16", "float16"] and str(product.checked_type.dtype) in ("float16", "float32")


def check_batch_matmul(call: Call) -> bool:
    """True for a batched product of float16 by a transposed operand, with equal batches."""
    product = _product(call)
    assert product.attrs is not None
    batches = [one.checked_type.shape[0] for one in product.args]
    same = str(batches[0]) == str(batches[1])
    return (
        check_gemm(call) and same and not product.attrs["transpose_a"] and bool(product.attrs["transpose_b"])
    )


def pattern_table() -> PatternTable:
    """The groups of operators that CUTLASS takes, the longest first."""
    return [
        ("cutlass.dense_bias_gelu_fp16", make_gemm_pattern(True, "gelu"), check_gemm),
        ("cutlass.dense_bias_gelu_fp32", make_gemm_pattern(True, "gelu", "float32"), check_gemm),
        ("cutlass.dense_bias_relu", make_gemm_pattern(True, "relu"), check_gemm),
        ("cutlass.dense_bias", make_gemm_pattern(True), check_gemm),
        ("cutlass.dense", make_gemm_pattern(False), check_gemm),
        ("cutlass.batch_matmul", make_batch_matmul_pattern(), check_batch_matmul),
    ]


register_pattern_table(NAME, pattern_table)


def partition_for_cutlass(mod: IRModule) -> IRModule:
    """The module with the products for CUTLASS as functions whose ``Compiler`` is "cutlass"."""
    passes = [
        transform.InferType(),
        transform.MergeComposite(pattern_table()),
        transform.AnnotateTarget([NAME]),
        transform.PartitionGraph(),
    ]
    return Sequential(passes)(mod)


def _without_kernels(name: str) -> NotInThisVersion:
    return NotInThisVersion(
        f"contrib.cutlass.{name}: CUTLASS's kernels are not in this version. relay.build(mod, 'cuda') compiles "
        "products for tensor cores without partition_for_cutlass"
    )


def tune_cutlass_kernels(
    mod: IRModule,
    sm: int,
    profile_all: bool = True,
    use_multiprocessing: bool = False,
    tmp_dir: str = "./tmp",
) -> tuple[IRModule, int]:
    """Would choose a template for each product; raises ``NotInThisVersion``."""
    raise _without_kernels("tune_cutlass_kernels")


def build_cutlass_kernels(lib: Any, sm: int, tmp_dir: str = "./tmp", lib_path: str = "compile.so") -> Any:
    """Would compile a model's kernels with ``nvcc``; raises ``NotInThisVersion``."""
    raise _without_kernels("build_cutlass_kernels")


def build_cutlass_kernels_vm(
    vm_exec: Any,
    sm: int,
    tmp_dir: str = "./tmp",
    lib_path: str = "compile.so",
    vmcode_path: str = "vmcode.ro",
) -> Any:
    """Would compile a program's kernels with ``nvcc``; raises ``NotInThisVersion``."""
    raise _without_kernels("build_cutlass_kernels_vm")
