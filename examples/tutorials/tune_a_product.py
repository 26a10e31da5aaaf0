"""AutoTVM and AutoScheduler on one product: a template with knobs, a task without, records, and the best of them.

Run it:  python -m tilewright.as_tvm examples/tutorials/tune_a_product.py
"""

import logging
import tempfile

import numpy as np
import tvm
import tvm.testing
from tvm import auto_scheduler, autotvm, te

N = 64
logging.getLogger("autotvm").setLevel(logging.WARNING)
log = tempfile.mkdtemp() + "/records"
a, b = (np.random.rand(N, N).astype("float32") for _ in range(2))
out = tvm.nd.empty((N, N))


@autotvm.template("tutorial/matmul")
def template(n, dtype):
    """The schedule, with what is to be chosen left open."""
    A, B = te.placeholder((n, n), name="A", dtype=dtype), te.placeholder((n, n), name="B", dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, k, yi, xi)
    return s, [A, B, C]


task = autotvm.task.create("tutorial/matmul", args=(N, "float32"), target="llvm")
assert len(task.config_space) == 49
measure = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=1))
tuner = autotvm.tuner.RandomTuner(task)
tuner.tune(n_trial=2, measure_option=measure, callbacks=[autotvm.callback.log_to_file(log + ".log")])
with autotvm.apply_history_best(log + ".log"), tvm.target.Target("llvm"):
    s, tensors = template(N, "float32")
    tvm.build(s, tensors)(tvm.nd.array(a), tvm.nd.array(b), out)
tvm.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4)


@auto_scheduler.register_workload
def matmul_add(n, dtype):
    """The computation alone: the space of schedules is found."""
    A, B = te.placeholder((n, n), name="A", dtype=dtype), te.placeholder((n, n), name="B", dtype=dtype)
    k = te.reduce_axis((0, n), name="k")
    return [A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


task = auto_scheduler.SearchTask(func=matmul_add, args=(N, "float32"), target=tvm.target.Target("llvm"))
policy = auto_scheduler.SketchPolicy(task, verbose=0)
options = auto_scheduler.TuningOptions(
    num_measure_trials=2, measure_callbacks=[auto_scheduler.RecordToFile(log + ".json")], verbose=0
)
task.tune(options, search_policy=policy)
sch, args = task.apply_best(log + ".json")
tvm.build(sch, args, "llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
tvm.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4)
print(task.print_best(log + ".json"))
