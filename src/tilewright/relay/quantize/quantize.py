"""``relay.quantize.quantize``: a program of floats as one of integers, by TVM's passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay import transform
from tilewright.relay.backend.preparation import bind_params_by_name, with_main
from tilewright.relay.quantize.annotate import annotate
from tilewright.relay.quantize.calibrate import calibrate
from tilewright.relay.quantize.configuration import QuantizeContext, current_qconfig
from tilewright.relay.quantize.conversions import partition_conversions
from tilewright.relay.quantize.observe import Sample
from tilewright.relay.quantize.partition import partition
from tilewright.relay.quantize.realize import realize


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """The program as the passes of quantisation want it: parameters bound, batch norms folded into weights, as far as
    the level of the current context goes."""
    if params:
        mod = with_main(mod, bind_params_by_name(mod["main"], params))
    passes = Sequential(
        [
            transform.SimplifyInference(),
            transform.FoldConstant(),
            transform.FoldScaleAxis(),
            transform.CanonicalizeOps(),
            transform.FoldConstant(),
        ]
    )
    return passes(mod)


def quantize(
    mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Iterable[Sample] | None = None
) -> IRModule:
    """The program on integers, by the current ``qconfig``. ``dataset`` has inputs by name, which the modes of
    calibration that measure need. With ``do_simulation`` it stays on floats that are rounded as the integers would."""
    configuration = current_qconfig()
    mod = prerequisite_optimize(mod, params)
    passes = [partition(), annotate(), calibrate(dataset), transform.InferType()]
    if not configuration.do_simulation:
        passes.append(realize())
    passes.append(transform.FoldConstant())
    needed = ["QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize"]
    with PassContext(opt_level=3, required_pass=needed), QuantizeContext():
        mod = Sequential(passes)(mod)
    if configuration.partition_conversions == "disabled":
        return mod
    dtypes = {configuration.dtype_input, configuration.dtype_weight, configuration.dtype_activation}
    return partition_conversions(mod, dtypes, configuration.partition_conversions == "fully_integral")
