"""The operators that only kernels for NVIDIA GPUs have; ``tir.ptx`` builds calls of them and says what they mean."""

from __future__ import annotations

from typing import Final

PTX_PURE: Final = (
    "ptx_wgmma_descriptor",
    "ptx_float8_encode",
    "ptx_float8_decode",
)

PTX_READ_STATE: Final = ("ptx_elect_sync", "ptx_cluster_rank")

PTX_UPDATE_STATE: Final = (
    *("ptx_ldmatrix", "ptx_stmatrix", "ptx_mma"),
    *("ptx_cp_async", "ptx_cp_async_commit", "ptx_cp_async_wait", "ptx_cp_async_mbarrier_arrive"),
    *("ptx_mbarrier_init", "ptx_mbarrier_inval", "ptx_mbarrier_arrive", "ptx_mbarrier_arrive_expect_tx"),
    *("ptx_mbarrier_wait", "ptx_mbarrier_arrive_cluster"),
    *("ptx_fence_proxy_async", "ptx_fence_mbarrier_init", "ptx_fence_cluster"),
    *(
        "ptx_bulk_tensor_load",
        "ptx_bulk_tensor_store",
        "ptx_bulk_commit",
        "ptx_bulk_wait",
        "ptx_prefetch_tensor_map",
    ),
    *("ptx_wgmma", "ptx_wgmma_fence", "ptx_wgmma_commit", "ptx_wgmma_wait"),
    *("ptx_set_max_registers", "ptx_barrier_sync", "ptx_barrier_arrive"),
    *("ptx_cluster_arrive", "ptx_cluster_wait"),
    *("ptx_grid_wait", "ptx_grid_launch"),
)
