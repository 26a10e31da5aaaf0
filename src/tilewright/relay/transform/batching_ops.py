"""BatchingOps: combines parallel dense layers into batched products, and parallel products into larger ones."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.transform import Sequential
from tilewright.relay.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from tilewright.relay.transform.combine_parallel_dense import CombineParallelDense


@dataclass
class BatchingOps(Sequential):
    """Combine parallel dense layers, and then parallel products."""

    name = "BatchingOps"

    def __post_init__(self) -> None:
        super().__init__([CombineParallelDense(3), CombineParallelBatchMatmul(3)], name=type(self).name)
