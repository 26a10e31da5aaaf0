"""compile_model, beyond what the command line's tests show."""

import numpy as np
import pytest

from tilewright.driver import tvmc
from tilewright.driver.tvmc import TVMCException, composite_target
from tilewright.driver.tvmc.compiler import save_dumps


def test_dumps(small_onnx, tmp_path):
    """The forms that are named lie beside the package, under its whole name as TVM writes them."""
    model = tvmc.load(small_onnx)
    tvmc.compile(
        model,
        target="llvm",
        package_path=str(tmp_path / "m.tar"),
        output_format="tar",
        dump_code=["relay", "ll"],
        disabled_pass=["FoldConstant"],
        pass_context_configs=["relay.FuseOps.max_depth=1"],
        desired_layout="NCHW",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.tar", "m.tar.ll", "m.tar.relay"]
    save_dumps("other", {"tir": "text"}, str(tmp_path))
    assert (tmp_path / "other.tir").read_text() == "text"


def test_a_code_generator_takes_part(small_onnx):
    """A composite target's pipeline gets the module with the options that were given."""
    seen = []

    def pipeline(mod, params, **options):
        seen.append((sorted(params), options))
        return mod

    composite_target.register_codegen("npu", pipeline)
    try:
        package = tvmc.compile(tvmc.load(small_onnx), "npu --mode=fast, llvm", output_format="tar")
    finally:
        del composite_target.REGISTERED_CODEGEN["npu"]
    assert seen == [(["bias", "weight"], {"mode": "fast"})]
    assert package.executor_type == "graph"


def test_targets_as_objects(small_onnx, expected):
    """A Target with a host does as well as a string."""
    from tilewright.target import Target

    package = tvmc.compile(tvmc.load(small_onnx), Target("llvm"), target_host="llvm", output_format="tar")
    x = np.ones((2, 4), "float32")
    found = tvmc.run(package, device="cpu", inputs={"x": x}, repeat=1, number=1)
    np.testing.assert_allclose(found.get_output("output_1"), expected(x)[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "nothing"}, "graph, vm and aot"),
        ({"tuning_records": "x.json"}, "there is no file x.json"),
        ({"output_format": "zip"}, "so, tar and mlf"),
        ({"dump_code": "pdf"}, "relay, tir, ll, asm"),
        ({"package_path": "m.so", "output_format": "mlf"}, "is a shared library"),
    ],
)
def test_wrong_arguments(options, message, small_onnx):
    """Each error says what is possible."""
    with pytest.raises(TVMCException, match=message):
        tvmc.compile(tvmc.load(small_onnx), "llvm", **{"output_format": "tar", **options})
