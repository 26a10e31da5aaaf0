"""Instruments: timing, counting, printing, and what happens when one fails."""

import tvm
import tvm.relay as relay
from tvm.ir.instrument import PassTimingInstrument, pass_instrument
from tvm.relay.testing import mlp

relay_mod, relay_params = mlp.get_workload(1, 10, (1, 4, 4))

timing_inst = PassTimingInstrument()
with tvm.transform.PassContext(instruments=[timing_inst]):
    relay_mod = relay.transform.InferType()(relay_mod)
    relay_mod = relay.transform.FoldScaleAxis()(relay_mod)
    profiles = timing_inst.render()
assert "FoldScaleAxis" in profiles and "us" in profiles
print(profiles)

cur_pass_ctx = tvm.transform.PassContext.current()
cur_pass_ctx.override_instruments([timing_inst])
relay_mod = relay.transform.InferType()(relay_mod)
assert "InferType" in timing_inst.render()
cur_pass_ctx.override_instruments(None)


@pass_instrument
class RelayCallNodeDiffer:
    """How many calls each pass adds or takes."""

    def __init__(self):
        self._op_diff = []
        self._op_cnt_before_stack = []

    def enter_pass_ctx(self):
        self._op_diff = []

    def exit_pass_ctx(self):
        assert len(self._op_cnt_before_stack) == 0, "The stack is not empty. Something wrong."

    def run_before_pass(self, mod, info):
        self._op_cnt_before_stack.append((info.name, self._count_nodes(mod)))

    def run_after_pass(self, mod, info):
        name_before, op_to_cnt_before = self._op_cnt_before_stack.pop()
        assert name_before == info.name, "name_before: {}, info.name: {}".format(name_before, info.name)
        cur_depth = len(self._op_cnt_before_stack)
        op_to_cnt_after = self._count_nodes(mod)
        op_diff = self._diff(op_to_cnt_after, op_to_cnt_before)
        if op_diff:
            self._op_diff.append((cur_depth, info.name, op_diff))

    def get_pass_to_op_diff(self):
        return self._op_diff

    @staticmethod
    def _count_nodes(mod):
        ret = {}

        def visit(node):
            if isinstance(node, relay.expr.Call):
                op_name = node.op.name if hasattr(node.op, "name") else "CallNode"
                ret[op_name] = ret.get(op_name, 0) + 1

        relay.analysis.post_order_visit(mod["main"], visit)
        return ret

    @staticmethod
    def _diff(d_after, d_before):
        ret = {}
        for key in set(d_after.keys()) | set(d_before.keys()):
            diff = d_after.get(key, 0) - d_before.get(key, 0)
            if diff:
                ret[key] = diff
        return ret


call_node_inst = RelayCallNodeDiffer()
desired_layouts = {"nn.conv2d": ["NHWC", "HWIO"]}
pass_seq = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.ConvertLayout(desired_layouts),
        relay.transform.FoldConstant(),
        relay.transform.FuseOps(fuse_opt_level=2),
    ]
)
with tvm.transform.PassContext(
    opt_level=3,
    instruments=[call_node_inst],
):
    relay_mod = pass_seq(relay_mod)
assert any(name == "FuseOps" for _, name, _ in call_node_inst.get_pass_to_op_diff())


class PassExampleBase:
    """Says what is called."""

    def __init__(self, name):
        self._name = name
        self.seen = []

    def enter_pass_ctx(self):
        self.seen.append("enter_pass_ctx")

    def exit_pass_ctx(self):
        self.seen.append("exit_pass_ctx")

    def should_run(self, mod, info):
        self.seen.append("should_run")
        return True

    def run_before_pass(self, mod, pass_info):
        self.seen.append("run_before_pass")

    def run_after_pass(self, mod, pass_info):
        self.seen.append("run_after_pass")


@pass_instrument
class PassFine(PassExampleBase):
    pass


@pass_instrument
class PassBadEnterCtx(PassExampleBase):
    def enter_pass_ctx(self):
        raise ValueError("{} bad enter_pass_ctx!".format(self._name))


@pass_instrument
class PassBadRun(PassExampleBase):
    def run_before_pass(self, mod, pass_info):
        raise ValueError("{} bad run_before_pass!".format(self._name))


fine = PassFine("PassFine")
with tvm.transform.PassContext(instruments=[fine]):
    relay.transform.InferType()(relay_mod)
assert fine.seen == ["enter_pass_ctx", "should_run", "run_before_pass", "run_after_pass", "exit_pass_ctx"], (
    fine.seen
)

first, last = PassFine("PassFine_0"), PassFine("PassFine_1")
demo_ctx = tvm.transform.PassContext(instruments=[first, PassBadEnterCtx("PassBadEnterCtx"), last])
try:
    with demo_ctx:
        relay.transform.InferType()(relay_mod)
except ValueError as ex:
    assert "bad enter_pass_ctx" in str(ex)
else:
    raise AssertionError("nothing was raised")
assert first.seen == ["enter_pass_ctx", "exit_pass_ctx"], first.seen
assert last.seen == []

try:
    with tvm.transform.PassContext(instruments=[PassFine("a"), PassBadRun("b")]):
        relay.transform.InferType()(relay_mod)
except ValueError as ex:
    assert "bad run_before_pass" in str(ex)
else:
    raise AssertionError("nothing was raised")
