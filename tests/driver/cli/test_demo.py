"""``tilewright demo``: the network is right, and the command tells what it did."""

import json
from pathlib import Path

import numpy as np

from tilewright.driver import tvmc
from tilewright.driver.cli import demo, main
from tilewright.support.cbuild import CompilerError


def test_the_shipped_files_are_small():
    """The model is under 300 KB, and there is one image of each digit."""
    assert demo.MODEL.stat().st_size < 300_000
    with np.load(demo.IMAGES) as stored:
        assert stored["image"].shape == (10, 1, 8, 8)
        assert sorted(stored["label"]) == list(range(10))


def test_demo_recognises_every_digit(tmp_path, capsys):
    """All ten images are recognised, the network agrees with the reference, and the package is there."""
    assert main(["demo", "--output", str(tmp_path / "out"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["predicted"] for one in report["predictions"]] == list(range(10))
    assert all(one["probability"] > 0.5 for one in report["predictions"])
    assert report["validation"]["agrees"] is True
    assert report["validation"]["outputs"][0]["relative"] < 1e-4
    assert Path(report["artefact"]) == tmp_path / "out" / "digits.tar"
    assert tvmc.TVMCPackage(report["artefact"]).executor_type == "graph"
    names = [one["executor"] for one in report["latency"]]
    assert names[0] == "Tilewright" and names[2].startswith("plain executor")
    assert report["latency"][0]["microseconds"] < report["latency"][2]["microseconds"]


def test_demo_prints_for_people(tmp_path, capsys, monkeypatch):
    """The printed form has pictures, the package and what to try next; without a linker it says how to get one."""

    def refuse(model, compiled, path, cross=None, cross_options=None, output_format="so"):
        if output_format == "so":
            raise CompilerError("no C compiler")
        return model.export_package(compiled, path, output_format=output_format)

    monkeypatch.setattr(tvmc.compiler, "write_package", refuse)
    assert main(["demo", "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "10 of 10 images are recognised" in printed
    assert "agrees with the reference executor" in printed
    assert "█" in printed and "time for one image" in printed
    assert 'pip install "tilewright[cross]"' in printed
    assert "What to try next" in printed
    assert str(tmp_path / "digits.tar") in printed


def test_a_file_in_the_place_of_the_folder(tmp_path, capsys):
    """It is named, with what to do, before anything is compiled."""
    (tmp_path / "out").write_text("")
    assert main(["demo", "-o", str(tmp_path / "out")]) == 2
    assert "its parent is a file, not a folder" in capsys.readouterr().err


def test_the_network_compiled_ahead_of_time_is_right(tmp_path, capsys):
    """Kernels that share an arena and become one function read what was written last."""
    arguments = ["compile", str(demo.MODEL), "--executor", "aot", "-f", "tar", "-o", str(tmp_path / "m.tar")]
    for level in ("0", "3"):
        assert main([*arguments, "-O", level, "--validate"]) == 0, capsys.readouterr().out
