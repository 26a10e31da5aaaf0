"""Scopes of storage and execution."""

import tilewright as tvm


def test_make_se_scope() -> None:
    """A device, with or without a target and a memory scope; equal by what they hold."""
    plain = tvm.target.make_se_scope(tvm.device("cuda", 1))
    assert (plain.device_type, plain.virtual_device_id, plain.target, plain.memory_scope) == (2, 1, None, "")
    target = tvm.target.Target("llvm")
    whole = tvm.target.make_se_scope(tvm.cpu(0), target, "local")
    assert whole.target == target and whole.memory_scope == "local" and whole != plain
    assert whole == tvm.target.SEScope(1, 0, target, "local")
