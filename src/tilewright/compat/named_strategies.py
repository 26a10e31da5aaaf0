"""``relay.op.strategy``: a name for the strategy of each operator, and what users build strategies from.

Every strategy is a generic function (attrs, inputs, out_type, target) to an ``OpStrategy``. Its default is what the
table of strategies says; what a user registers under a key, ``@conv2d_strategy.register("cuda")``, wins over it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from tilewright import te
from tilewright.compat import wrap_compute, wrap_compute_others
from tilewright.compat.named_schedules import wrap_topi_schedule
from tilewright.compat.operator_schedules import (
    ADAPTIVE_POOLS,
    POOL_GRADIENTS,
    POOLS,
    WEIGHT_TRANSFORMS,
    Calls,
    get_conv2d_in_channels,
    get_conv2d_out_channels,
    is_depthwise_conv2d,
)
from tilewright.ir.op import Op
from tilewright.strategy import (
    OpStrategy,
    by_target,
    register_schedule_for,
    register_strategy_for,
    strategy_of,
)
from tilewright.target.generic_func import DispatchedFunction, override_native_generic_func
from tilewright.topi.nn.dense import copy_if_identical

STRATEGIES: Final[dict[str, str]] = {
    **{
        f"{name}_strategy": f"nn.{name}"
        for name in (
            *("conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose", "conv3d_transpose"),
            *("deformable_conv2d", "dense", "matmul", "batch_matmul", "softmax", "fast_softmax"),
            *("log_softmax", "sparse_dense", "sparse_add", "sparse_conv2d", "correlation"),
            *("bitserial_conv2d", "bitserial_dense"),
        )
    },
    "conv2d_NCHWc_strategy": "nn.contrib_conv2d_NCHWc",
    "depthwise_conv2d_NCHWc_strategy": "nn.contrib_depthwise_conv2d_NCHWc",
    # The layout letters in TVM's names.
    "conv2d_winograd_without_weight_transfrom_strategy": "nn.contrib_conv2d_winograd_without_weight_transform",
    "conv3d_winograd_without_weight_transfrom_strategy": "nn.contrib_conv3d_winograd_without_weight_transform",
    "conv2d_gemm_without_weight_transform_strategy": "nn.contrib_conv2d_gemm_without_weight_transform",
    "dense_pack_strategy": "nn.contrib_dense_pack",
    "sparse_dense_padded_strategy": "nn.internal.sparse_dense_padded",
    "dilation2d_strategy": "image.dilation2d",
    **{
        f"{name}_strategy": f"vision.{name}"
        for name in ("multibox_prior", "multibox_transform_loc", "get_valid_counts", "roi_align", "proposal")
    },
    "nms_strategy": "vision.non_max_suppression",
    "all_class_nms_strategy": "vision.all_class_non_max_suppression",
    **{
        f"{name}_strategy": name
        for name in (
            *("sort", "argsort", "topk", "searchsorted", "scatter", "scatter_add", "scatter_nd", "cumsum"),
            *("cumprod", "unique", "argwhere", "invert_permutation", "einsum", "sparse_fill_empty_rows"),
            "sparse_reshape",
        )
    },
    **{f"{name}_strategy": f"random.{name}" for name in ("threefry_generate", "threefry_split", "uniform")},
}
"""The operator that each strategy is for."""

X86_STRATEGIES: Final = {
    f"{name.removesuffix('_strategy')}_strategy_cpu": STRATEGIES[name]
    for name in (
        *("conv2d_strategy", "dense_strategy", "dense_pack_strategy", "batch_matmul_strategy"),
        *("conv2d_NCHWc_strategy", "conv2d_transpose_strategy", "depthwise_conv2d_NCHWc_strategy"),
    )
} | {"conv2d_winograd_strategy_cpu": STRATEGIES["conv2d_winograd_without_weight_transfrom_strategy"]}

SCHEDULES: Final[dict[str, list[Calls]]] = {
    "injective": [Calls("injective")],
    "reduce": [Calls("reduce")],
    "concatenate": [Calls("concatenate")],
    "transpose": [Calls("transpose")],
    "pool": POOLS,
    "pool_grad": POOL_GRADIENTS,
    "adaptive_pool": ADAPTIVE_POOLS,
    "lrn": [Calls("nn.lrn")],
    "bitpack": [Calls("nn.bitpack")],
    "roi_pool": [Calls("vision.roi_pool")],
    "sparse_transpose": [Calls("nn.sparse_transpose")],
    **WEIGHT_TRANSFORMS,
}
"""The operators of each schedule (attrs, outs, target)."""


def naive_schedule(_: Any, outs: Any, target: Any) -> Any:
    """Loops as the computation says, nothing inlined and nothing moved."""
    outputs = outs if isinstance(outs, (list, tuple)) else [outs]
    return te.create_schedule([output.op for output in outputs])


_TAKE_OUTS: Final = frozenset({"sparse_fill_empty_rows", "sparse_reshape", "scatter", "scatter_add"})
"""Operators whose strategies call their inputs ``outs`` in TVM."""


def _table_strategy(operator: str) -> Callable[..., OpStrategy]:
    def strategy(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
        return strategy_of(Op.get(operator), attrs, inputs, out_type, target)

    def strategy_of_outs(attrs: Any, outs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
        return strategy_of(Op.get(operator), attrs, outs, out_type, target)

    made = strategy_of_outs if operator in _TAKE_OUTS else strategy
    made.__doc__ = f"The strategy of {operator}."
    return made


def _generic_strategy(name: str, operator: str) -> DispatchedFunction:
    default = _table_strategy(operator)
    default.__name__ = default.__qualname__ = name
    made = override_native_generic_func(name)(default)
    made.generic.watch(lambda key, function: register_strategy_for(operator, key, function))
    return made


def _generic_schedule(name: str, operators: Sequence[Calls]) -> DispatchedFunction:
    def scheduled(attrs: Any, outs: Any, target: Any) -> Any:
        return by_target(attrs, outs, target)

    def tell(key: str, function: Callable[..., Any]) -> None:
        for calls in operators:
            register_schedule_for(calls.operator, key, function, calls.applies, f"relay schedule_{name}")

    scheduled.__name__ = scheduled.__qualname__ = f"schedule_{name}"
    scheduled.__doc__ = "(attrs, outs, target) to a schedule."
    made = override_native_generic_func(f"schedule_{name}")(scheduled)
    made.generic.watch(tell)
    return made


@cache
def _generic() -> dict[str, Any]:
    wrappers = {
        name: function
        for module in (wrap_compute, wrap_compute_others)
        for name, function in vars(module).items()
        if name.startswith("wrap_compute_") or name == "wrap_topi_compute"
    }
    return {
        **{name: _generic_strategy(name, operator) for name, operator in STRATEGIES.items()},
        **{f"schedule_{name}": _generic_schedule(name, calls) for name, calls in SCHEDULES.items()},
        **wrappers,
        "copy_if_identical": copy_if_identical,
        "get_conv2d_in_channels": get_conv2d_in_channels,
        "get_conv2d_out_channels": get_conv2d_out_channels,
        "is_depthwise_conv2d": is_depthwise_conv2d,
        "naive_schedule": naive_schedule,
        "wrap_topi_schedule": wrap_topi_schedule,
    }


@cache
def _x86() -> dict[str, Any]:
    return {name: _table_strategy(operator) for name, operator in X86_STRATEGIES.items()}


def attributes(module: str) -> dict[str, Any]:
    """The names of one of these modules, each always the same object."""
    return _x86() if module == "relay.op.strategy.x86" else _generic()
