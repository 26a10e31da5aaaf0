"""Measuring candidates: builders, runners, inputs and results."""

from tilewright.autotvm.measure import executor
from tilewright.autotvm.measure.local_builder import BuildResult, LocalBuilder
from tilewright.autotvm.measure.measure import (
    Builder,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    Runner,
)
from tilewright.autotvm.measure.measure_methods import (
    DefaultModuleLoader,
    LocalRunner,
    RPCRunner,
    check_remote,
    create_measure_batch,
    default_module_loader,
    measure_option,
    request_remote,
)
