"""Sessions: named inputs to named outputs, from many threads at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.runtime import load_module

W = np.arange(32 * 32, dtype="float32").reshape(32, 32) / 1024


def _model() -> Any:
    image, scale = relay.var("image", shape=(4, 32)), relay.var("scale", shape=(32,))
    hidden = relay.nn.relu(relay.nn.dense(image * scale, relay.const(W)))
    return relay.build(
        tvm.IRModule.from_expr(relay.Function([image, scale], relay.Tuple([hidden, relay.sum(hidden)]))),
        "llvm",
    )


@pytest.fixture(scope="module")
def library() -> Any:
    return _model()


def test_threads_get_their_own_results(library: Any, tmp_path: Path) -> None:
    library.export_library(str(tmp_path / "model.tar"))
    for session in (library.session(), load_module(tmp_path / "model.tar").session()):

        def call(number: int, session: Any = session) -> bool:
            image = np.full((4, 32), number, "float32")
            made = session.run({"image": image, "scale": np.ones(32, "float32")})
            return np.allclose(made["output_0"], image @ W.T, rtol=1e-5)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(call, range(200)))
        assert 1 <= len(session._idle) <= 8


def test_names(library: Any) -> None:
    session = library.session(output_names=["hidden", "total"])
    assert session.input_names == ("image", "scale")
    image, scale = np.ones((4, 32)), [2.0] * 32
    made = session.run({"image": image, "scale": scale})
    assert list(made) == ["hidden", "total"]
    np.testing.assert_allclose(made["total"], made["hidden"].sum(), rtol=1e-5)
    again = session.run({"image": image * 2, "scale": scale})
    assert again["hidden"][0, 5] != made["hidden"][0, 5]  # fresh arrays
    with pytest.raises(ValueError, match="no input 'imgae'; did you mean 'image'"):
        session.run({"imgae": image, "scale": scale})
    with pytest.raises(ValueError, match="no value for the input scale"):
        session.run({"image": image})
    with pytest.raises(ValueError, match="2 outputs, which need as many different names"):
        library.session(output_names=["one"])
    with pytest.raises(TypeError, match="a dictionary by name, not a ndarray"):
        session.run(image)
    with pytest.raises(ValueError, match="dimension"):
        session.run({"image": image[:1], "scale": scale})
    assert session.run({"image": image, "scale": scale})["total"] == made["total"]  # an error spoils nothing


def test_a_module_without_a_model(library: Any) -> None:
    with pytest.raises(ValueError, match="has no model 'other' to run"):
        library.lib.session(name="other")


def test_a_model_of_another_name() -> None:
    """It is found without its name where it is the only one, and by its name."""
    x = relay.var("x", shape=(2,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    library = relay.build(module, "llvm", mod_name="net").get_lib()
    for session in (library.session(), library.session(name="net")):
        np.testing.assert_allclose(session.run({"x": [0.0, 1.0]})["output_0"], [1, np.e], rtol=1e-6)
    with pytest.raises(ValueError, match="no model 'default'"):
        library.session(name="default")
    functions = tvm.build(te_add(), target="llvm")
    with pytest.raises(ValueError, match="has no model to run"):
        functions.session()


def te_add() -> tvm.IRModule:
    """A function that is no model."""
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    return tvm.lower(te.create_schedule(b.op), [a, b], name="add")
