"""Sessions that compile a model of open sizes again for the sizes that come often."""

import numpy as np
import pytest
from tests.threads import in_threads

from tilewright import IRModule, relay
from tilewright.relay.backend.specialization import SpecializingSession, with_input_shapes
from tilewright.support.errors import TilewrightError


def _dense_softmax() -> relay.Function:
    """Rows of open number and a constant weight."""
    x = relay.var("x", shape=(relay.Any(), 12), dtype="float32")
    weight = relay.const(np.linspace(-1, 1, 5 * 12, dtype="float32").reshape(5, 12))
    return relay.Function([x], relay.nn.softmax(relay.nn.dense(x, weight)))


def _expected(x: np.ndarray) -> np.ndarray:
    scores = x @ np.linspace(-1, 1, 5 * 12, dtype="float32").reshape(5, 12).T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 12)).astype("float32")


def test_sizes_that_come_often_get_code_of_their_own():
    """Before, during and after the build the results are the same, and other sizes stay with the general code."""
    session = SpecializingSession(_dense_softmax(), calls=3)
    assert session.input_names == ("x",)
    for _ in range(4):
        x = _rows(7)
        np.testing.assert_allclose(session.run({"x": x})["output_0"], _expected(x), rtol=1e-5)
    assert session.wait(60)
    assert session.specialized == [{"x": (7, 12)}]
    for count in (7, 3, 7, 1):
        x = _rows(count)
        np.testing.assert_allclose(session.run({"x": x})["output_0"], _expected(x), rtol=1e-5)
    assert session.specialized == [{"x": (7, 12)}]
    assert "1 sizes" in repr(session)


def test_the_specialized_code_is_a_graph_of_constant_sizes():
    """What is compiled for sizes has no open size left, through a reshape that computes its shape."""
    x = relay.var("x", shape=(relay.Any(), 6), dtype="float32")
    shape = relay.concatenate([relay.take(relay.shape_of(x), relay.const([0])), relay.const([2, 3])], 0)
    function = relay.Function([x], relay.reshape(x, shape))
    module = with_input_shapes(IRModule.from_expr(function), {"x": (4, 6)})
    given = np.arange(24, dtype="float32").reshape(4, 6)
    found = relay.build(module, "llvm").session().run({"x": given})
    np.testing.assert_array_equal(found["output_0"], given.reshape(4, 2, 3))


def test_the_least_recently_used_sizes_are_dropped():
    """Of three sizes that come often, with room for two, the one that was not used since goes."""
    session = SpecializingSession(_dense_softmax(), calls=1, most=2)
    for count in (2, 3, 2, 4):
        session.run({"x": _rows(count)})
        assert session.wait(60)
    assert session.specialized == [{"x": (2, 12)}, {"x": (4, 12)}]


def test_a_model_whose_sizes_are_data_stays_general():
    """The number of results depends on the values: the reason is kept, and the results stay right."""
    x = relay.var("x", shape=(relay.Any(),), dtype="float32")
    session = SpecializingSession(relay.Function([x], relay.argwhere(x)), calls=1)
    for values in ([1, 0, 2], [0, 0, 5], [1, 1, 1]):
        given = np.array(values, "float32")
        np.testing.assert_array_equal(session.run({"x": given})["output_0"], np.argwhere(given))
        assert session.wait(60)
    assert session.specialized == []
    ((sizes, reason),) = session.refused
    assert sizes == {"x": (3,)} and "virtual machine" in reason


def test_many_threads():
    """Calls from several threads with several sizes give what each asked for while builds run."""
    session = SpecializingSession(_dense_softmax(), calls=2)
    wrong: list[int] = []

    def call(start: int) -> None:
        for step in range(20):
            x = _rows(1 + (start + step) % 3)
            if not np.allclose(session.run({"x": x})["output_0"], _expected(x), rtol=1e-5):
                wrong.append(start)

    in_threads(call, range(4))
    assert wrong == [] and session.wait(60)
    assert len(session.specialized) == 3


def test_after_close_nothing_is_built():
    """Calls go on with the general code."""
    session = SpecializingSession(_dense_softmax(), calls=1)
    session.close()
    x = _rows(5)
    np.testing.assert_allclose(session.run({"x": x})["output_0"], _expected(x), rtol=1e-5)
    assert session.wait(1) and session.specialized == []


def test_mistakes_are_those_of_a_session():
    """Wrong names, and limits that make no sense."""
    session = SpecializingSession(_dense_softmax(), calls=1)
    with pytest.raises(Exception, match="no input 'y'"):
        session.run({"y": _rows(1)})
    with pytest.raises(TilewrightError, match="at least 1"):
        SpecializingSession(_dense_softmax(), calls=0)
