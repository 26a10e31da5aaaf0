"""A kind of target in one file: plain serial loops as machine code of this processor, for reading and comparing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tilewright as tvm
from tilewright import relay, te
from tilewright.codegen import Code, CodeGenerator, LoopProgram, generator_for, register
from tilewright.runtime.module import Module
from tilewright.schedule import Scheduler, register_scheduler
from tilewright.target import Target
from tilewright.target.kind import TargetKind, register_kind

KIND = "serial"
HOST = Target("llvm")


class SerialGenerator(CodeGenerator):
    """The code that LLVM makes for this processor."""

    kinds = (KIND,)
    makes_host_code = True

    def compile(self, program: LoopProgram, target: Target) -> Code:
        """As for ``llvm``: the loops are what differs."""
        return generator_for(HOST).compile(program, HOST)

    def link(self, codes: Sequence[Code], target: Target) -> Module:
        """As for ``llvm``."""
        return generator_for(HOST).link(codes, HOST)

    def load(self, block: bytes) -> Code:
        """As for ``llvm``."""
        return generator_for(HOST).load(block)

    def cache_key(self, target: Target) -> str:
        """That of the machine code."""
        return generator_for(HOST).cache_key(HOST)


def construct(outputs: Sequence[te.Tensor]) -> te.Schedule:
    """The schedules: one loop an axis, in order, and what is elementwise computed where it is used."""
    made = te.create_schedule([tensor.op for tensor in outputs])
    te.schedule.AutoInlineInjective(made)
    return made


register_kind(TargetKind(KIND, tvm.cpu().device_type, (KIND,)))
register(SerialGenerator())
register_scheduler(KIND, Scheduler(KIND, construct))


if __name__ == "__main__":
    x, weight = relay.var("x", shape=(2, 4)), relay.var("weight", shape=(3, 4))
    module = tvm.IRModule.from_expr(relay.nn.relu(relay.nn.dense(x, weight)))
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype("float32") for shape in [(2, 4), (3, 4)])
    found = relay.create_executor("graph", module, target=KIND).evaluate()(a, b)
    np.testing.assert_allclose(found.numpy(), np.maximum(a @ b.T, 0), rtol=1e-5)
    print("serial: agrees with NumPy")
