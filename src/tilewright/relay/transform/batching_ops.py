"""BatchingOps: combines parallel dense layers into batched products, and parallel products into larger ones."""

from __future__ import annotations

from tilewright.ir.transform import Sequential
from tilewright.relay.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from tilewright.relay.transform.combine_parallel_dense import CombineParallelDense


def BatchingOps() -> Sequential:
    """Combine parallel dense layers, and then parallel products."""
    return Sequential([CombineParallelDense(3), CombineParallelBatchMatmul(3)], name="BatchingOps")
