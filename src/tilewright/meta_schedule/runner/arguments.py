"""The steps that runners share: arguments for a candidate, and its measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.meta_schedule.arg_info import TensorInfo
from tilewright.meta_schedule.runner.config import EvaluatorConfig
from tilewright.runtime.device import Device
from tilewright.runtime.module import Module
from tilewright.runtime.ndarray import NDArray
from tilewright.search.child import random_array

T_ARG_INFO_JSON_OBJ = list[Any]
T_ARG_INFO_JSON_OBJ_LIST = list[T_ARG_INFO_JSON_OBJ]
T_ARGUMENT = Any
T_ARGUMENT_LIST = list[T_ARGUMENT]


def allocate(device: Device, args_info: Sequence[Any], alloc_repeat: int) -> list[list[NDArray]]:
    """So many sets of arguments with random values on a device."""
    infos = [TensorInfo.from_json(one) for one in args_info]
    return [
        [
            random_array(info.shape, info.dtype, device, repetition * len(infos) + place)
            for place, info in enumerate(infos)
        ]
        for repetition in range(alloc_repeat)
    ]


def measure(
    rt_mod: Module, device: Device, evaluator_config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]
) -> list[float]:
    """The seconds of each measurement with each set of arguments."""
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name,
        device,
        number=evaluator_config.number,
        repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
        f_preproc="cache_flush_cpu_non_first_arg" if evaluator_config.enable_cpu_cache_flush else "",
    )
    costs: list[float] = []
    for arguments in repeated_args:
        device.sync()
        costs += [float(cost) for cost in evaluator(*arguments).results]
    return costs
