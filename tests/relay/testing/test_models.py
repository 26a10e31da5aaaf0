"""The models of ``relay.testing``: each is inferred, interpreted and compiled, and both agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay import testing
from tilewright.relay.op.shapes import dims
from tilewright.support.errors import ModelError


def small_densenet() -> relay.Function:
    """Few layers, few channels."""
    return testing.densenet.densenet(8, 4, (2, 3), (1, 3, 32, 32), "float32", 10)


MODELS: list[tuple[str, Callable[[], Any], tuple[int, ...]]] = [
    ("mlp", lambda: testing.mlp.get_workload(2, 5, (1, 6, 6)), (2, 5)),
    ("lenet", lambda: testing.lenet.get_workload(2), (2, 10)),
    ("resnet_8", lambda: testing.resnet.get_workload(1, 10, 8, (3, 16, 16)), (1, 10)),
    (
        "resnet_8_nhwc",
        lambda: testing.resnet.get_workload(1, 10, 8, (16, 16, 3), layout="NHWC"),
        (1, 10),
    ),
    ("resnet_18", lambda: testing.resnet.get_workload(1, 10, 18, (3, 40, 40)), (1, 10)),
    ("resnet_3d_8", lambda: testing.resnet_3d.get_workload(1, 4, 8, (3, 4, 8, 8)), (1, 4)),
    ("vgg_11", lambda: testing.vgg.get_workload(1, 10, (3, 32, 32), batch_norm=True), (1, 10)),
    ("mobilenet", lambda: testing.mobilenet.get_workload(1, 10, (3, 32, 32)), (1, 10)),
    ("squeezenet_1.0", lambda: testing.squeezenet.get_workload(1, 10, "1.0", (3, 48, 48)), (1, 10)),
    ("squeezenet_1.1", lambda: testing.squeezenet.get_workload(1, 10, "1.1", (3, 48, 48)), (1, 10)),
    ("densenet", lambda: testing.create_workload(small_densenet()), (1, 10)),
    ("inception_v3", lambda: testing.inception_v3.get_workload(1, 10, (3, 75, 75)), (1, 10)),
    ("dcgan", lambda: testing.dcgan.get_workload(1, ngf=4, random_len=10), (1, 3, 64, 64)),
    ("dqn", lambda: testing.dqn.get_workload(1, 6, (4, 36, 36)), (1, 6)),
    ("dqn_nhwc", lambda: testing.dqn.get_workload(1, 6, (36, 36, 4), layout="NHWC"), (1, 6)),
    ("lstm", lambda: testing.lstm.get_workload(3, 8, 2), (2, 8)),
    ("unet", lambda: testing.unet.get_workload(1, 2, (3, 16, 16), 4, 2), (1, 2, 16, 16)),
    (
        "transformer",
        lambda: testing.transformer.get_workload(2, 6, 16, num_layers=2, num_heads=4, intermediate_size=32),
        (2, 6, 16),
    ),
    ("synthetic", lambda: testing.synthetic.get_workload(), (1, 3, 24, 12)),
]
"""Name, maker, and the shape of the result."""
SLOW = {"resnet_18", "vgg_11", "squeezenet_1.0", "inception_v3"}

LARGE: list[tuple[str, Callable[[], Any], int, int]] = [
    ("resnet_50", lambda: testing.resnet.get_net(1, 1000, 50), 53, 25_600_000),
    ("resnet_1001", lambda: testing.resnet.get_net(1, 10, 1001, (3, 32, 32)), 1003, 10_480_000),
    ("resnet_3d_18", lambda: testing.resnet_3d.get_net(1, 400, 18), 21, 33_400_000),
    ("vgg_19", lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 19), 16, 143_700_000),
    ("mobilenet", lambda: testing.mobilenet.mobile_net(), 27, 4_250_000),
    ("inception_v3", lambda: testing.inception_v3.get_net(1, 1000, (3, 299, 299), "float32"), 94, 23_800_000),
    ("densenet_121", lambda: testing.densenet.get_net(batch_size=1), 120, 8_060_000),
    ("dcgan", lambda: testing.dcgan.get_net(1), 4, 12_700_000),
    ("dqn", lambda: testing.dqn.get_net(1), 3, 1_690_000),
    ("transformer", lambda: testing.transformer.get_net(), 0, 85_050_000),
]
"""Name, maker, convolutions, and parameters as they are published or counted by hand, to a hundredth."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test compiles into a cache of its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def stirred(params: dict[str, Any]) -> dict[str, np.ndarray]:
    """Parameters that are zeros or ones become numbers around those, so that a mistake in their use shows."""
    generator = np.random.default_rng(7)
    made = {}
    for name, value in params.items():
        array = value.numpy()
        if array.min() == array.max():
            array = (array + generator.uniform(-0.2, 0.2, array.shape)).astype(array.dtype)
        made[name] = array
    return made


@pytest.mark.parametrize(
    ("maker", "shape"),
    [
        pytest.param(*rest, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, *rest in MODELS
    ],
)
def test_a_model_computes_what_its_reference_does(maker: Callable[[], Any], shape: tuple[int, ...]) -> None:
    """Types are inferred; the compiled model agrees with the interpreted one."""
    module, params = maker()
    main = module["main"]
    assert dims(main.checked_type.ret_type) == shape
    values = stirred(params)
    (data,) = [one for one in main.params if one.name_hint == "data"]
    given = np.random.default_rng(1).uniform(-1, 1, dims(data.checked_type)).astype("float32")
    expected = relay.create_executor("debug", module, params=values).evaluate()(given).numpy()
    assert np.isfinite(expected).all()
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", module, params=values).evaluate()(given).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(
    ("maker", "convolutions", "parameters"), [pytest.param(*rest, id=name) for name, *rest in LARGE]
)
def test_large_models_have_their_layers(maker: Callable[[], Any], convolutions: int, parameters: int) -> None:
    """The networks in full size have as many convolutions and parameters as they are known to have, the moving averages
    of batch normalisation counted with them."""
    made = testing.run_infer_type(maker())
    found = testing.count_ops(made)
    assert sum(number for name, number in found.items() if name.startswith("nn.conv")) == convolutions
    total = sum(
        int(np.prod(dims(one.checked_type))) for one in made.params if not one.name_hint.endswith("data")
    )
    assert abs(total - parameters) <= parameters / 100


def test_depths_that_do_not_exist_are_refused() -> None:
    """With the depths that do exist."""
    with pytest.raises(ModelError, match="no residual network has 17 layers: 18, 34, 50"):
        testing.resnet.get_net(1, 10, 17)
    with pytest.raises(ModelError, match="6n \\+ 2"):
        testing.resnet.get_net(1, 10, 9, (3, 28, 28))
    with pytest.raises(ModelError, match="11, 13, 16 or 19"):
        testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 12)
    with pytest.raises(ModelError, match="versions 1.0 and 1.1"):
        testing.squeezenet.get_net(1, (3, 224, 224), 1000, "2.0", "float32")
    with pytest.raises(ModelError, match="121, 161"):
        testing.densenet.get_net(5)
    with pytest.raises(ModelError, match="64 by 64"):
        testing.dcgan.get_net(1, oshape=(3, 32, 32))
    with pytest.raises(ModelError, match="3 heads do not divide 16"):
        testing.transformer.get_net(hidden_size=16, num_heads=3)


def test_half_precision_goes_through_a_model() -> None:
    """The element type of the input decides that of the parameters and of the result."""
    module, params = testing.resnet.get_workload(1, 10, 8, (3, 8, 8), dtype="float16")
    assert str(module["main"].checked_type.ret_type.dtype) == "float16"
    assert {str(value.dtype) for value in params.values()} == {"float16"}
