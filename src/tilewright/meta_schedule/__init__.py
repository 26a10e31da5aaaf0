"""The entry points of MetaSchedule that other programs call, on AutoScheduler's search.

TVM's own MetaSchedule came after version 0.8, whose interface this package has. PyTorch's backend ``tvm`` calls two of
its functions (``torch.compile(model, backend="tvm", options={"scheduler": "meta_schedule", "trials": 200})``):
``relay_integration.tune_relay`` and ``relay_integration.compile_relay``. They are here, and they tune with
``auto_scheduler``; its spaces, postprocessors and databases are not.
"""

from tilewright.meta_schedule import relay_integration, utils
from tilewright.meta_schedule.relay_integration import Database, compile_relay, tune_relay

__all__ = ["Database", "compile_relay", "relay_integration", "tune_relay", "utils"]
