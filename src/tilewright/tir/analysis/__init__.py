"""Analyses of loop programs."""

from tilewright.tir.analysis.block_access_region import get_block_access_region, get_block_read_write_region
from tilewright.tir.analysis.buffer_access_lca import detect_buffer_access_lca
from tilewright.tir.analysis.calculate_workspace import calculate_workspace_bytes
from tilewright.tir.analysis.domain_touched import domain_touched
from tilewright.tir.analysis.expr_deep_equal import expr_deep_equal
from tilewright.tir.analysis.verify_gpu_code import verify_gpu_code
from tilewright.tir.analysis.verify_memory import verify_memory
from tilewright.tir.analysis.verify_ssa import verify_ssa

__all__ = [
    "calculate_workspace_bytes",
    "detect_buffer_access_lca",
    "domain_touched",
    "expr_deep_equal",
    "get_block_access_region",
    "get_block_read_write_region",
    "verify_gpu_code",
    "verify_memory",
    "verify_ssa",
]
