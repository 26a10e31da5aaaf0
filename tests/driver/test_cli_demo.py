"""``tilewright demo``: the kernels are right for every machine description, and the command tells what it did."""

import json
from dataclasses import replace

import numpy
import pytest

import tilewright as tvm
from tilewright.driver.cli import demo, main
from tilewright.driver.cli.demo_kernels import matrix_product, softmax
from tilewright.support.errors import RuntimeFailure
from tilewright.target import describe_cpu


@pytest.mark.parametrize(("vector_bits", "registers"), [(32, 16), (128, 32), (256, 16), (512, 32)])
def test_matrix_product_is_right_with_any_vectors(vector_bits, registers):
    """The tiles follow from the description, and the product does not depend on them."""
    cpu = replace(describe_cpu("llvm"), vector_bits=vector_bits, vector_registers=registers)
    schedule, tensors = matrix_product(128, 64, 48, cpu)
    generator = numpy.random.default_rng(1)
    left = generator.standard_normal((128, 48), dtype="float32")
    right = generator.standard_normal((48, 64), dtype="float32")
    result = tvm.nd.empty((128, 64), "float32")
    tvm.build(schedule, tensors, "llvm")(tvm.nd.array(left), tvm.nd.array(right), result)
    numpy.testing.assert_allclose(result.numpy(), left @ right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("vector_bits", [128, 256, 512])
def test_softmax_is_right_with_any_vectors(vector_bits):
    """Rows sum to one and agree with NumPy, for large values too."""
    cpu = replace(describe_cpu("llvm"), vector_bits=vector_bits)
    schedule, tensors = softmax(16, 256, cpu)
    values = numpy.random.default_rng(2).standard_normal((16, 256), dtype="float32") * 30 + 100
    result = tvm.nd.empty((16, 256), "float32")
    tvm.build(schedule, tensors, "llvm")(tvm.nd.array(values), result)
    numpy.testing.assert_allclose(result.numpy().sum(axis=1), numpy.ones(16), rtol=1e-5)
    numpy.testing.assert_allclose(result.numpy(), demo._numpy_softmax(values), rtol=1e-4, atol=1e-7)


def test_demo_reports_artefacts_and_errors(tmp_path, monkeypatch, capsys):
    """Each kernel is exported, and the report gives times and a small error."""
    monkeypatch.setattr(demo, "SIZE", 256)
    assert main(["demo", "--output", str(tmp_path / "out"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kernel"] for row in rows] == ["matrix_product", "softmax"]
    for row in rows:
        assert row["error"] < 1e-5
        assert row["tilewright_ms"] > 0
        assert row["numpy_ms"] > 0
        assert (tmp_path / "out" / f"{row['kernel']}.so").exists() or "no C compiler" in row["artefact"]


def test_demo_prints_for_people(tmp_path, monkeypatch, capsys):
    """The printed form names the artefacts and what to try next."""
    monkeypatch.setattr(demo, "SIZE", 256)
    assert main(["demo", "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "matrix_product 256x256" in printed
    assert "What to try next" in printed
    assert "tilewright doctor" in printed


def test_a_wrong_result_is_an_error(tmp_path, monkeypatch):
    """If the compiled kernel differed from NumPy, the demo would not report a time."""
    kernel = softmax(16, 256, describe_cpu("llvm"))
    values = numpy.random.default_rng(3).standard_normal((16, 256), dtype="float32")
    with pytest.raises(RuntimeFailure, match="differs from NumPy"):
        demo._measure("softmax", kernel, [values], lambda array: array, tmp_path)
