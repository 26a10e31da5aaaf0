"""Kernels in the virtual machine: their work follows from the shapes that they were called with."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver import tvmc
from tilewright.driver.profile.collect import profile_model, profile_package
from tilewright.driver.profile.machine_kernels import specialized
from tilewright.driver.profile.report import report_html
from tilewright.driver.tvmc.common import TVMCException
from tilewright.relay.analysis.work import count_flops
from tilewright.runtime.call_log import LoggedTensor


@pytest.fixture(scope="module")
def model():
    """A product and a softmax over any number of rows."""
    x = relay.var("x", shape=(relay.Any(), 16), dtype="float32")
    weight = relay.var("w", shape=(8, 16), dtype="float32")
    body = relay.nn.softmax(relay.nn.dense(x, weight))
    module = tvm.IRModule.from_expr(relay.Function([x, weight], body))
    values = np.random.default_rng(0).standard_normal((8, 16), dtype="float32")
    return tvmc.TVMCModel(relay.transform.InferType()(module), {"w": tvm.nd.array(values)})


@pytest.fixture(scope="module")
def settings():
    """For the virtual machine of this machine."""
    return tvmc.compiler.make_settings("llvm", executor="vm")


@pytest.fixture(scope="module")
def report(model, settings):
    """Profiled on 50 rows."""
    return profile_model(model, settings, "dynamic", repeat=2, fill_shapes={"x": [50, 16]})


def test_work_is_that_of_the_shapes_it_ran_on(report):
    """50 rows: the product's operations, with the name of the type, compared with the limits."""
    dense = next(one for one in report.kernels.kernels() if "dense" in one.name)
    assert dense.flops == 2 * 50 * 8 * 16 and dense.steps[0].shapes == ("float32[50, 8]",)
    assert dense.size_bytes == 4 * (50 * 16 + 8 * 16 + 50 * 8)
    assert 0 < dense.of_limit <= 1 or report.kernels.above_limit
    assert report.kernels.run_seconds >= report.kernels.total_seconds > 0


def test_report_has_code_and_page(report):
    """Every form of every kernel, and a page that says which executor it was."""
    assert report.executor == "vm" and report.as_json()["executor"] == "vm"
    dense = next(name for name in report.code if "dense" in name)
    assert "dense" in report.code[dense]["relay"] and "define" in report.code[dense]["ll"]
    assert '"executor":"vm"' in report_html(report)
    assert any("softmax" in node.label for node in report.after_fusion.nodes)


def test_a_package_is_timed_without_its_operations(model, settings, tmp_path):
    """Times, shapes and bytes are known; operations are not, and nothing is made up from the bytes alone."""
    path = tvmc.compiler.write_package(
        model, settings.compile(model.mod, model.params), str(tmp_path / "d.tar")
    )
    report = profile_package(tvmc.TVMCPackage(path), inputs={"x": np.ones((5, 16), "float32")}, repeat=1)
    dense = next(one for one in report.kernels.kernels() if "dense" in one.name)
    assert dense.seconds > 0 and dense.flops is None and dense.of_limit is None
    assert dense.size_bytes == 4 * (5 * 16 + 8 * 16 + 5 * 8)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [({"x": [5, 17]}, "cannot have the shape"), ({"x": [5]}, "cannot have"), ({"y": [1]}, "no input 'y'")],
)
def test_shapes_that_do_not_fit_are_refused(model, settings, shapes, message):
    """The error names the input and its shape."""
    with pytest.raises(TVMCException, match=message):
        profile_model(model, settings, fill_shapes=shapes)


def test_specialized_functions_have_constant_shapes(model):
    """The types of the arguments decide those of the body; too few arguments say nothing."""
    x = relay.var("x", shape=(relay.Any(),), dtype="float32")
    function = relay.Function([x], relay.exp(x))
    assert count_flops(specialized(function, [LoggedTensor("float32", (7,))])) == 7
    assert specialized(function, []) is None
