"""Recurrences: a cumulative sum, a scan of several stages, and one with two states.

Run it:  python -m tilewright.as_tvm examples/tutorials/scan.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import te

m, n = te.var("m"), te.var("n")
X = te.placeholder((m, n), name="X")
s_state = te.placeholder((m, n))
s_init = te.compute((1, n), lambda _, i: X[0, i])
s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
s_scan = tvm.te.scan(s_init, s_update, s_state, inputs=[X])

s = te.create_schedule(s_scan.op)
xo, xi = s[s_init].split(s_init.op.axis[1], factor=4)
yo, yi = s[s_update].split(s_update.op.axis[1], factor=4)
s[s_update].vectorize(yi)
print(tvm.lower(s, [X, s_scan], simple_mode=True))
fscan = tvm.build(s, [X, s_scan], "llvm", name="myscan")
data = np.random.uniform(size=(6, 10)).astype("float32")
a, b = tvm.nd.array(data), tvm.nd.array(np.zeros((6, 10), "float32"))
fscan(a, b)
tvm.testing.assert_allclose(b.numpy(), np.cumsum(data, axis=0), rtol=1e-5)

# Two stages in a step: the first of them is computed within the loop over time.
s_update_s1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] * 2, name="s1")
s_update_s2 = te.compute((m, n), lambda t, i: s_update_s1[t, i] + X[t, i], name="s2")
s_scan = tvm.te.scan(s_init, s_update_s2, s_state, inputs=[X])
s = te.create_schedule(s_scan.op)
s[s_update_s1].compute_at(s[s_update_s2], s_update_s2.op.axis[1])
tvm.build(s, [X, s_scan], "llvm")(a, b)
wanted = [data[0]]
for row in data[1:]:
    wanted.append(wanted[-1] * 2 + row)
tvm.testing.assert_allclose(b.numpy(), np.stack(wanted), rtol=1e-5)

# Two states, of different sizes.
width = 4
s_state1, s_state2 = te.placeholder((m, n)), te.placeholder((m, width))
s_init1 = te.compute((1, n), lambda _, i: X[0, i])
s_init2 = te.compute((1, width), lambda _, i: 0.0)
s_update1 = te.compute((m, n), lambda t, i: s_state1[t - 1, i] + X[t, i])
s_update2 = te.compute((m, width), lambda t, i: s_state2[t - 1, i] + s_state1[t - 1, 0])
r0, r1 = tvm.te.scan([s_init1, s_init2], [s_update1, s_update2], [s_state1, s_state2], inputs=[X])
assert r0.value_index == 0 and r1.value_index == 1
s = te.create_schedule(r0.op)
c = tvm.nd.array(np.zeros((6, width), "float32"))
tvm.build(s, [X, r0, r1], "llvm")(a, b, c)
tvm.testing.assert_allclose(b.numpy(), np.cumsum(data, axis=0), rtol=1e-5)
tvm.testing.assert_allclose(c.numpy()[-1], np.full(width, np.cumsum(data[:, 0])[:-1].sum()), rtol=1e-4)
