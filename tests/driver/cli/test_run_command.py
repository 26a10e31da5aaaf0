"""``tilewright run``: inputs from files and images, outputs, times, and how it fails."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tilewright.driver import tvmc
from tilewright.driver.cli import main


@pytest.fixture(scope="module")
def image_package(image_onnx, folder):
    """A package of the model that gives its image back, times two."""
    path = str(folder / "image.tar")
    return tvmc.compile(tvmc.load(image_onnx), "llvm", package_path=path, output_format="tar").package_path


def test_inputs_and_outputs_are_files(small_package, tmp_path, expected, capsys):
    """An .npz goes in by name, an .npy for the only input, and the outputs come out as .npz."""
    x = np.random.default_rng(1).standard_normal((2, 4)).astype("float32")
    np.savez(tmp_path / "x.npz", x=x)
    np.save(tmp_path / "x.npy", x.astype("float64"))
    for given in (str(tmp_path / "x.npz"), str(tmp_path / "x.npy"), f"x={tmp_path / 'x.npy'}"):
        output = tmp_path / "out.npz"
        assert main(["run", small_package, "-i", given, "-o", str(output)]) == 0
        with np.load(output) as stored:
            np.testing.assert_allclose(stored["y"], expected(x)[0], rtol=1e-5, atol=1e-6)
        output.unlink()
    assert f"outputs written to {output}" in capsys.readouterr().out


@pytest.mark.parametrize(("mode", "value"), [("zeros", 0.0), ("ones", 1.0)])
def test_inputs_are_filled(mode, value, small_package, expected, capsys):
    """What is not given is zeros, ones, or random."""
    assert main(["run", small_package, "--fill-mode", mode, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    wanted = expected(np.full((2, 4), value, "float32"))[1]
    assert report["outputs"][1]["largest"] == pytest.approx(float(wanted.max()), rel=1e-5)
    assert report["seconds"] is None


def test_times_top_and_profile(small_package, capsys):
    """Times, the largest values and a line for each kernel, as text and as JSON."""
    options = ["--print-time", "--repeat", "3", "--number", "2", "--print-top", "2", "--profile"]
    assert main(["run", small_package, *options, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["seconds"]["results"]) == 3 and report["seconds"]["min"] > 0
    top = report["outputs"][1]["top"]
    assert len(top) == 2 and top[0]["value"] >= top[1]["value"]
    assert top[0]["value"] == report["outputs"][1]["largest"]
    assert report["profile"] and all(one["kernel"].startswith("tvmgen_") for one in report["profile"])
    assert main(["run", small_package, *options, "--end-to-end"]) == 0
    printed = capsys.readouterr().out
    for text in ("Execution time summary", "the largest values of p", "all kernels", "median"):
        assert text in printed


def test_images_become_inputs(image_package, tmp_path, capsys):
    """A PNG is resized to the input's size; mean and scale are for pixels from 0 to 255, by channel."""
    pixels = np.zeros((8, 12, 3), "uint8")
    pixels[...] = (10, 20, 30)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    output = tmp_path / "y.npz"
    options = ["--mean", "10,10,10", "--scale", "1/10", "-o", str(output)]
    assert main(["run", image_package, "-i", str(tmp_path / "a.png"), *options]) == 0
    with np.load(output) as stored:
        found = stored["y"]
    assert found.shape == (1, 3, 4, 6)
    np.testing.assert_allclose(found[0, :, 0, 0], [0.0, 2.0, 4.0], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-i", "nothere.npz"], "there is no file nothere.npz"),
        (["-i", "{tmp}/text.txt"], "inputs are .npz, .npy or images"),
        (["-i", "{tmp}/broken.npz"], "broken.npz cannot be read"),
        (["-i", "{tmp}/broken.npy"], "broken.npy cannot be read"),
        (["-i", "{tmp}/other.npz"], "has no input 'z'; it has x"),
        (["-i", "{tmp}/shape.npz"], "the input x float32[2, 4] is given a value of shape [4, 2]"),
        (
            ["-i", "{tmp}/kind.npz"],
            "is given values of type complex64: convert them first, array.astype('float32')",
        ),
        (["-i", "y={tmp}/shape.npz"], "has no input 'y'; it has x"),
        (
            ["-i", "{tmp}/shape.npz", "-o", "{tmp}/shape"],
            "shape.npz is an input and would be overwritten",
        ),
        (["-i", "x={tmp}/shape.npz", "-o", "{tmp}/shape.npz"], "choose another name with -o"),
        (
            ["-o", "{tmp}/text.txt/out.npz"],
            "out.npz cannot be written (its parent is a file, not a folder): choose another place with -o",
        ),
        (["-i", "{tmp}/a.png"], "is not an image"),
        (["--device", "cuda"], "was compiled for cpu and cannot run on cuda"),
        (["--print-top", "0"], "at least 1"),
        (["--print-time", "--repeat", "0"], "at least 1"),
        (["-i", "{tmp}/shape.npz", "--mean", "a"], "--mean takes numbers"),
        (["--scale", "1/0"], "--scale takes numbers"),
    ],
)
def test_wrong_inputs_are_explained(options, message, small_package, tmp_path, capsys):
    """The exit code is 2, and the message names the input and what it takes."""
    (tmp_path / "text.txt").write_text("1 2 3")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not a zip")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    np.savez(tmp_path / "other.npz", z=np.zeros(3))
    np.savez(tmp_path / "shape.npz", x=np.zeros((4, 2), "float32"))
    np.savez(tmp_path / "kind.npz", x=np.zeros((2, 4), "complex64"))
    Image.fromarray(np.zeros((2, 2), "uint8")).save(tmp_path / "a.png")
    assert main(["run", small_package, *[option.format(tmp=tmp_path) for option in options]]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == "" and "Traceback" not in captured.err


def test_a_damaged_package_is_refused(small_package, tmp_path, capsys):
    """Not one byte of what is inside may have changed, and a file that is not a package is told apart."""
    content = bytearray(Path(small_package).read_bytes())
    place = bytes(content).index(b"tvmgen_default_fused")
    content[place] ^= 1
    bad = tmp_path / "bad.tar"
    bad.write_bytes(content)
    assert main(["run", str(bad)]) == 2
    assert "is damaged" in capsys.readouterr().err
    bad.write_bytes(bytes(content[:3000]))
    assert main(["run", str(bad)]) == 2
    assert "bad.tar" in capsys.readouterr().err
    bad.write_bytes(b"nothing of the kind")
    assert main(["run", str(bad)]) == 2
    assert "not a readable tar archive" in capsys.readouterr().err


def test_a_model_is_no_package(image_onnx, capsys):
    """Who forgets to compile is told to."""
    assert main(["run", image_onnx]) == 2
    message = f"{image_onnx} is a model, not a package: compile it first, tilewright compile {image_onnx}"
    assert message in capsys.readouterr().err


def test_what_was_written_and_made_up_is_said(small_package, tmp_path, capsys):
    """The suffix that outputs get is in the message, and inputs that were not given are named."""
    assert main(["run", small_package, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert f"outputs written to {tmp_path / 'out.npz'}\n" in printed and (tmp_path / "out.npz").is_file()
    assert "x was filled with random values: use --inputs to set it" in printed
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 4), "float32"))
    assert main(["run", small_package, "-i", str(tmp_path / "x.npz")]) == 0
    assert "was filled" not in capsys.readouterr().out
