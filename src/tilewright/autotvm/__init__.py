"""AutoTVM: templates with knobs, tuners that try them, and records of what was found.

    @autotvm.template("mine/matmul")
    def matmul(n):
        ...
        cfg = autotvm.get_config()
        cfg.define_split("tile_x", x, num_outputs=2)
        ...

    task = autotvm.task.create("mine/matmul", args=(512,), target="llvm")
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(200, autotvm.measure_option("local", "local"), callbacks=[autotvm.callback.log_to_file("m.log")])
    with autotvm.apply_history_best("m.log"), tvm.target.Target("llvm"):
        schedule, arguments = matmul(512)

The operators of Relay have templates already: ``autotvm.task.extract_from_program`` gives a program's tasks.
"""

from tilewright.autotvm import (
    database,
    env,
    feature,
    graph_tuner,
    measure,
    record,
    task,
    tophub,
    tuner,
    utils,
)
from tilewright.autotvm.env import GLOBAL_SCOPE
from tilewright.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    measure_option,
)
from tilewright.autotvm.task import (
    ConfigEntity,
    ConfigSpace,
    FallbackContext,
    get_config,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from tilewright.autotvm.task.dispatcher import ApplyGraphBest as apply_graph_best
from tilewright.autotvm.task.dispatcher import ApplyHistoryBest as apply_history_best
from tilewright.autotvm.tuner import callback
