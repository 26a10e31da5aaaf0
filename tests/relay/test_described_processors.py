"""Networks compiled for processors that are described, not only for the one that runs the tests.

Cost models and strategies choose other layouts, tiles and instructions for each: what the graph passes make is run by
the reference, the code is compiled for all, and run where this machine has the features.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.support.errors import TilewrightError

PROCESSORS = {
    "x86-64-v2": "xmm",
    "haswell": "ymm",
    "znver4": "zmm",
    "skylake-avx512": "zmm",
    "sapphirerapids": "zmm",
}
"""The processors, and the widest registers that their code uses."""


def constant(*shape: int, seed: int = 0) -> relay.Constant:
    """Random weights."""
    made = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return relay.const(made.astype("float32"))


def images(x: Any) -> Any:
    """Convolutions of all kinds: some processors take Winograd's for the second."""
    x = relay.nn.relu(relay.nn.conv2d(x, constant(32, 3, 3, 3), strides=2, padding=1))
    shortcut = x
    x = relay.nn.relu(relay.nn.conv2d(x, constant(32, 32, 3, 3, seed=1), padding=1))
    x = relay.nn.conv2d(x, constant(32, 1, 3, 3, seed=2), padding=1, groups=32) + shortcut
    return relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x)), constant(10, 32, seed=3))


def tokens(x: Any) -> Any:
    """A product, a softmax and a norm of the rows of an image."""
    rows = relay.reshape(x, (1, -1, 28))
    scores = relay.nn.softmax(relay.nn.batch_matmul(rows, rows))
    mixed = relay.nn.batch_matmul(scores, relay.transpose(rows, (0, 2, 1)))
    return relay.nn.layer_norm(mixed, constant(28), constant(28, seed=1))


def integers(x: Any) -> Any:
    """A product of bytes, which processors have different instructions for."""
    whole = relay.cast(
        relay.clip(relay.round(x * relay.const(np.float32(40)) + relay.const(np.float32(128))), 0, 255),
        "uint8",
    )
    weight = relay.const(np.random.default_rng(4).integers(-127, 128, (16, 28)).astype("int8"))
    return relay.nn.dense(relay.reshape(whole, (-1, 28)), weight, out_dtype="int32")


NETWORKS = {"images": images, "tokens": tokens, "integers": integers}
DATA = np.random.default_rng(5).standard_normal((1, 3, 28, 28)).astype("float32")


def network(name: str) -> tvm.IRModule:
    """One of them as a module."""
    x = relay.var("x", shape=DATA.shape)
    return tvm.IRModule.from_expr(relay.Function([x], NETWORKS[name](x)))


@functools.cache
def expected(name: str) -> Any:
    """What the network gives."""
    return relay.create_executor("debug", network(name)).evaluate()(DATA).numpy()


def compare(found: Any, name: str) -> None:
    """Equal, up to the rounding of fast convolutions."""
    wanted = expected(name)
    tolerance = 0 if wanted.dtype.kind == "i" else 1e-3 * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", NETWORKS)
def test_what_the_passes_make_of_a_network(name: str, processor: str) -> None:
    """The reference gives the same for it as for the network itself."""
    with tvm.transform.PassContext(opt_level=3):
        made, params = relay.optimize(network(name), f"llvm -mcpu={processor} -num-cores=4", {})
    compare(relay.create_executor("debug", made, params=params).evaluate()(DATA).numpy(), name)


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_code_of_a_network(name: str, processor: str) -> None:
    """It uses the registers of the processor, and no wider ones; where this machine has them, it is right."""
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(network(name), f"llvm -mcpu={processor} -num-cores=4")
    code = library.lib.get_source("asm")
    widest = next(register for register in ("zmm", "ymm", "xmm") if register in code)
    assert widest == PROCESSORS[processor] or (name == "tokens" and widest == "ymm")
    try:
        model = graph_executor.GraphModule(library["default"](tvm.cpu()))
    except TilewrightError as error:
        if "cannot run" not in str(error):
            raise
        pytest.skip(f"this machine lacks what {processor} has")
    model.set_input("x", DATA)
    model.run()
    compare(model.get_output(0).numpy(), name)
