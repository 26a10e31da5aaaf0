"""``tilewright quantize`` and ``compile --mixed-precision``: what they print and write, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.relay.quantize.networks import DIGITS_MODEL, noisy_digits

from tilewright.driver import tvmc
from tilewright.driver.cli import main


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Noisy digits and their classes."""
    path = tmp_path_factory.mktemp("quantize") / "digits.npz"
    images, classes = noisy_digits(60, 0.05)
    np.savez(path, image=images, label=classes)
    return path


@pytest.fixture(scope="module")
def made(data):
    """The digits network, quantised: the folder that everything was written to, and what was printed."""
    folder = data.parent
    arguments = ["quantize", str(DIGITS_MODEL), "--data", str(data), "--labels", "label", "--budget", "1%"]
    arguments += ["-o", str(folder / "int8.tar"), "--onnx", str(folder / "int8.onnx")]
    assert main([*arguments, "--report", str(folder / "report.html")]) == 0
    return folder


def test_the_package_and_the_onnx_model_agree(made, data):
    """The compiled artefact, the ONNX file compiled again and ONNX Runtime give the same classes, and nearly the same
    numbers."""
    package = tvmc.TVMCPackage(str(made / "int8.tar"))
    again = tvmc.compile(tvmc.load(str(made / "int8.onnx")), "llvm", package_path=str(made / "again.tar"))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(made / "int8.onnx"), providers=["CPUExecutionProvider"])
    with np.load(data) as stored:
        images = stored["image"][:5, None]
    for image in images:
        ours, read = (
            next(iter(tvmc.run(one, "cpu", inputs={"image": image}, repeat=1, number=1).outputs.values()))
            for one in (package, again)
        )
        theirs = session.run(None, {"image": image})[0]
        np.testing.assert_array_equal(ours, read)
        np.testing.assert_allclose(ours, theirs, atol=0.05 * np.abs(theirs).max())


def test_the_table_and_the_report(made, data, capsys):
    """Each layer with its signal to noise, what it is computed in and why; a picture in the report."""
    images = made / "images.npy"
    with np.load(data) as stored:
        np.save(images, stored["image"])
    arguments = [
        "quantize",
        str(DIGITS_MODEL),
        "--data",
        str(images),
        "--samples",
        "20",
        "--method",
        "minmax",
    ]
    arguments += ["-o", str(made / "b.tar"), "--onnx", str(made / "b.onnx")]
    code = main([*arguments, "--budget", "0.1%"])
    printed = capsys.readouterr().out
    assert code == 0
    for words in (
        "signal to noise",
        " dB",
        "keeps the model within its budget",
        "float32",
        "layers are on integers",
    ):
        assert words in printed
    page = (made / "report.html").read_text()
    assert "<svg" in page and page.count("<rect") == page.count("<tr>") - 1
    assert "Accuracy is" in page and "{{" not in page
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == 20 and report["float"]["accuracy"] is None
    assert len(report["layers"]) == page.count("<rect")


def test_sensitive_layers_in_bfloat16(made, data, capsys):
    """The table, the report and the package have them; the ONNX model has float32 in their place, and runs. A budget
    that only float32 holds is said to be so."""
    images = made / "images.npy"
    with np.load(data) as stored:
        np.save(images, stored["image"])
    written = ["-o", str(made / "c.tar"), "--onnx", str(made / "c.onnx"), "--report", str(made / "c.html")]
    arguments = ["quantize", str(DIGITS_MODEL), "--data", str(images), "--samples", "20", *written]
    arguments += ["--sensitive", "bfloat16"]
    assert main([*arguments, "--budget", "0.5%", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    kinds = [one["computed_in"] for one in report["layers"]]
    assert set(kinds) == {"int8", "bfloat16"} and report["within_budget"]
    assert any("in float32, for runtimes without bfloat16" in one for one in report["notes"])
    page = (made / "c.html").read_text()
    assert page.count("<em class='half'>bfloat16</em>") == kinds.count("bfloat16") and "{{" not in page

    image = np.load(images)[:1]
    package = tvmc.TVMCPackage(str(made / "c.tar"))
    ours = next(iter(tvmc.run(package, "cpu", inputs={"image": image}, repeat=1, number=1).outputs.values()))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(made / "c.onnx"), providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"image": image})[0]
    np.testing.assert_allclose(ours, theirs, atol=0.02 * np.abs(theirs).max())

    assert main([*arguments, "--budget", "0.01%"]) == 1
    printed = capsys.readouterr().out
    assert "loses less than on integers" in printed and "--sensitive float32 holds it" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--data"),
        (["--data", "nothing"], "there is no data at nothing"),
        (["--data", "{data}"], "no such input"),
        (["--data", "{data}", "--labels", "label", "--budget", "lots"], "--budget takes a share"),
        (["--data", "{data}", "--labels", "label", "--keep", "nonsense"], "no layer 'nonsense'"),
    ],
)
def test_wrong_arguments(data, tmp_path, capsys, arguments, words):
    """One line that says what is wrong."""
    given = [one.format(data=data) for one in arguments]
    code = main(
        [
            "quantize",
            str(DIGITS_MODEL),
            *given,
            "-o",
            str(tmp_path / "a.tar"),
            "--onnx",
            str(tmp_path / "a.onnx"),
        ]
    )
    printed = capsys.readouterr().err
    assert code == 2 and words in printed and "Traceback" not in printed
    assert not list(tmp_path.iterdir())


def test_a_quantised_model_is_not_quantised_again(made, data, tmp_path, capsys):
    """It can be compiled as it is."""
    arguments = ["--labels", "label", "-o", str(tmp_path / "a.tar"), "--onnx", str(tmp_path / "a.onnx")]
    assert main(["quantize", str(made / "int8.onnx"), "--data", str(data), *arguments]) == 2
    assert "quantised already" in capsys.readouterr().err


def test_mixed_precision(made, data, tmp_path, capsys):
    """16-bit floats and 8-bit integers; validation names the layer where the error jumps, or says that none does."""
    output = str(tmp_path / "m.tar")
    for precision, more in (("bfloat16", []), ("int8", ["--data", str(data), "--labels", "label"])):
        arguments = [
            "compile",
            str(DIGITS_MODEL),
            "--mixed-precision",
            precision,
            *more,
            "--validate",
            "-o",
            output,
        ]
        assert main(arguments) == 0
        assert "Beside the float32 model, the error" in capsys.readouterr().out
        result = tvmc.run(
            tvmc.TVMCPackage(output), "cpu", inputs={"image": np.zeros((1, 1, 8, 8), "float32")}
        )
        assert next(iter(result.outputs.values())).dtype == np.float32
    assert main(["compile", str(DIGITS_MODEL), "--mixed-precision", "int8", "-o", output]) == 2
    assert "--data" in capsys.readouterr().err
    assert main(["compile", str(DIGITS_MODEL), "--data", str(data), "-o", output]) == 2
    assert "--mixed-precision int8" in capsys.readouterr().err
    assert main(["compile", str(DIGITS_MODEL), "--sensitive", "bfloat16", "-o", output]) == 2
    assert "--sensitive is for --mixed-precision int8" in capsys.readouterr().err


def test_what_float16_is_computed_in(tmp_path, capsys):
    """CPUs compute it in float32, and the user is told. At lower levels every operator rounds, and nothing is said."""
    arguments = ["compile", str(DIGITS_MODEL), "-o", str(tmp_path / "m.tar"), "--mixed-precision"]
    assert main([*arguments, "float16"]) == 0
    assert "On CPUs float16 computes in float32" in capsys.readouterr().out
    for quiet in (["bfloat16"], ["float16", "-O", "2"]):
        assert main([*arguments, *quiet, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["precision_note"] is None


def test_validation_of_a_quantised_model(made, tmp_path, capsys):
    """Beside the package's errors, what rounding does to each layer."""
    path = Path(made / "int8.onnx")
    main(["compile", str(path), "--validate", "-o", str(tmp_path / "m.tar"), "--json"])
    report = json.loads(capsys.readouterr().out)
    layers = report["validation"]["error_by_layer"]["layers"]
    assert layers and all(one["relative"] < 1.0 for one in layers)
