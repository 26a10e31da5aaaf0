"""Quantisation: programs of floats become programs of 8-bit integers.

Two ways lead there. ``quantize`` has TVM's passes and options (``qconfig``): one scale a tensor, realised with shifts.
``Study`` measures a model on a user's data, decides for each layer, and gives a program in the quantised dialect: it is
what ``tilewright quantize`` does.
"""

from tilewright.relay.quantize import calibrate as _calibrate
from tilewright.relay.quantize.annotate import annotate
from tilewright.relay.quantize.calibrate import calibrate, collect_stats
from tilewright.relay.quantize.configuration import (
    QAnnotateKind,
    QConfig,
    QuantizeContext,
    current_qconfig,
    kind2str,
    qconfig,
    quantize_context,
)
from tilewright.relay.quantize.partition import partition
from tilewright.relay.quantize.quantize import prerequisite_optimize, quantize
from tilewright.relay.quantize.realize import realize
from tilewright.relay.quantize.study import LayerReport, Quality, Quantised, Study

__all__ = [
    "LayerReport",
    "QAnnotateKind",
    "QConfig",
    "Quality",
    "Quantised",
    "QuantizeContext",
    "Study",
    "annotate",
    "calibrate",
    "collect_stats",
    "current_qconfig",
    "kind2str",
    "partition",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "quantize_context",
    "realize",
]
