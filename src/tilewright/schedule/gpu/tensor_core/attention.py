"""Attention on Hopper's tensor cores as one kernel: when there is one, and which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.schedule.gpu.tensor_core.attention_kernel import AttentionKernel
from tilewright.schedule.gpu.tensor_core.bulk_attention import BulkAttentionKernel, bulk_attention_pays
from tilewright.target.gpu import describe_gpu
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.nn.attention import AttentionShape

WIDEST_HEAD: Final = 128
"""Channels of a head whose sums and weights still fit a thread's registers."""


def attention_refused(shape: AttentionShape, dtype: str, target: Target) -> str | None:
    """Why there is no such kernel for an attention; None where there is."""
    if target.kind.name != "cuda" or not describe_gpu(target).has_wgmma:
        return "the target has no matrix units that read shared memory (sm_90a)"
    if dtype not in ("float16", "bfloat16"):
        return f"matrix units multiply 16-bit floats, not {dtype}"
    if shape.shared > 1 or shape.diagonal is not None:
        return "heads that share keys and causal masks are not supported"
    if max(shape.size, shape.value_size) > WIDEST_HEAD:
        return f"a head has more than {WIDEST_HEAD} channels"
    if shape.size % 8 or shape.value_size % 8:
        return "the channels of a head are not a multiple of 16 bytes"
    return None


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    shape: AttentionShape,
    scale: float,
    layouts: Sequence[str],
    first_heads: Sequence[int],
) -> Tensor:
    """``topi.nn.attention`` as one kernel."""
    given = [query, key, value] if mask is None else [query, key, value, mask]
    target = Target.current(allow_none=False)
    assert target is not None
    multiprocessors = describe_gpu(target).multiprocessors
    is_bulk = bulk_attention_pays(shape, layouts, mask is not None, multiprocessors)
    make = BulkAttentionKernel if is_bulk else AttentionKernel
    kernel = make(given, shape, scale, layouts, first_heads)
    return loop_kernel("attention", given, [(shape.result(layouts[3]), str(query.dtype))], kernel.emit)[0]
