"""Helpers for tests of programs that use Tilewright."""

from tilewright.testing.marks import (
    device_enabled,
    enabled_targets,
    fixture,
    identity_after,
    parameter,
    parametrize_targets,
    requires_cuda,
    requires_gpu,
    requires_llvm,
    requires_metal,
    requires_opencl,
    requires_package,
    requires_rocm,
    requires_vulkan,
    terminate_self,
    uses_gpu,
)
from tilewright.testing.numeric import assert_allclose, check_numerical_grads
from tilewright.testing.symbolic import (
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
)

__all__ = [
    "assert_allclose",
    "assert_prim_expr_equal",
    "check_bool_expr_is_true",
    "check_int_constraints_trans_consistency",
    "check_numerical_grads",
    "device_enabled",
    "enabled_targets",
    "fixture",
    "identity_after",
    "parameter",
    "parametrize_targets",
    "requires_cuda",
    "requires_gpu",
    "requires_llvm",
    "requires_metal",
    "requires_opencl",
    "requires_package",
    "requires_rocm",
    "requires_vulkan",
    "terminate_self",
    "uses_gpu",
]
