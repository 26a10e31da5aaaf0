"""Records: TVM's lines, read and written; files that are damaged, foreign or hostile."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tilewright import autotvm
from tilewright.autotvm import record, tophub
from tilewright.autotvm.measure import MeasureErrorNo, MeasureInput, MeasureResult
from tilewright.autotvm.task.dispatcher import ApplyHistoryBest
from tilewright.autotvm.testing import get_sample_records, get_sample_task
from tilewright.exec import autotvm_log_editor
from tilewright.support.errors import TilewrightError
from tilewright.target import Target

TVM_LINE = (
    '{"input": ["llvm -keys=cpu -link-params=0", "conv2d_NCHWc.x86", [["TENSOR", [1, 64, 56, 56], "float32"], '
    '["TENSOR", [64, 64, 3, 3], "float32"], [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}], '
    '"config": {"index": 252, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 16]], '
    '["tile_oc", "sp", [-1, 16]], ["tile_ow", "sp", [-1, 14]], ["unroll_kw", "ot", false]]}, '
    '"result": [[0.0016, 0.0017], 0, 1.2, 1600000000.5], "version": 0.2, "tvm_version": "0.8.0"}'
)
"""A line as TVM 0.8 writes it."""


@pytest.fixture(scope="module")
def samples() -> list[Any]:
    return get_sample_records(12)


def test_a_line_of_tvm_is_read() -> None:
    """Every field of a line that TVM wrote, and the same value when it is written again."""
    inp, res = record.decode(TVM_LINE)
    assert inp.task.name == "conv2d_NCHWc.x86" and inp.task.workload[3:] == (
        (1, 1),
        (1, 1, 1, 1),
        (1, 1),
        "NCHW",
        "NCHW",
        "float32",
    )
    assert inp.config["tile_ow"].size == [-1, 14] and inp.config["unroll_kw"].val is False
    assert res == MeasureResult((0.0016, 0.0017), 0, 1.2, 1600000000.5)
    written = json.loads(record.encode(inp, res))
    expected = json.loads(TVM_LINE)
    assert written.pop("input")[1:] == expected.pop("input")[1:]
    assert written == expected


@pytest.mark.parametrize("protocol", ["json", "pickle"])
def test_round_trip(samples: list[Any], protocol: str) -> None:
    """What is written is read: also failures, which have a large cost instead of an error."""
    inp, res = samples[3]
    again, result = record.decode(record.encode(inp, res, protocol), protocol)
    assert record.measure_str_key(again) == record.measure_str_key(inp)
    assert result == res
    failed = MeasureResult((RuntimeError("no"),), MeasureErrorNo.COMPILE_HOST, 1.0, 2.0)
    assert record.decode(record.encode(inp, failed))[1] == MeasureResult((1e9,), 2, 1.0, 2.0)


def test_pickles_are_not_read() -> None:
    """A row that TVM pickled is refused: nothing is unpickled."""
    with pytest.raises(RuntimeError, match="pickled records are not read"):
        record.decode("gAN9cQAu\tKGxwMAou", protocol="pickle")


def _changed(**changes: Any) -> str:
    return json.dumps({**json.loads(TVM_LINE), **changes})


HOSTILE = [
    "not json at all",
    "[1, 2, 3]",
    "null",
    '{"version": 0.2}',
    _changed(version=0.3),
    _changed(input=["llvm", "x"]),
    _changed(input=["llvm", 5, [], {}]),
    _changed(input=["no-such-target", "x", [], {}]),
    _changed(config={"index": "a", "entity": []}),
    _changed(config={"index": 0, "code_hash": None, "entity": [["x"]]}),
    _changed(config={"index": 0, "code_hash": None, "entity": [["x", "sp", "text"]]}),
    _changed(result=[[], 0, 1.0, 1.0]),
    _changed(result=[["fast"], 0, 1.0, 1.0]),
    _changed(result=[[float("nan")], 0, 1.0, 1.0]),
    _changed(result=[[1.0], "0", 1.0, 1.0]),
    "[" * 100_000,
]


def test_hostile_lines_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines that are not records neither end the reading nor count; one warning says how many there were."""
    path = tmp_path / "log.json"
    path.write_text("\n".join([TVM_LINE, *HOSTILE, '{"v": 0.1, "i": []}', "", TVM_LINE]) + "\n")
    with caplog.at_level(logging.WARNING, "autotvm"):
        found = list(record.load_from_file(path))
    assert len(found) == 2
    assert caplog.text.count("not records") == 1 and f"{len(HOSTILE)} lines" in caplog.text
    assert "line 2: not JSON" in caplog.text


def test_a_half_written_last_line_is_ignored(tmp_path: Path, samples: list[Any]) -> None:
    """After a kill in the middle of a write, the whole lines count; the next ones start on a line of their own."""
    path = tmp_path / "log.json"
    path.write_text(TVM_LINE + "\n" + TVM_LINE[:100])
    assert len(list(record.load_from_file(path))) == 1
    autotvm.callback.log_to_file(path)(None, *zip(*[samples[0]], strict=True))
    assert len(list(record.load_from_file(str(path)))) == 2


def test_open_files(samples: list[Any]) -> None:
    """Records are written to and read from open files too."""
    file = io.StringIO()
    autotvm.callback.log_to_file(file)(None, *zip(*samples[:3], strict=True))
    file.seek(0)
    assert [res.costs for _, res in record.load_from_file(file)] == [(1,), (2,), (3,)]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """The path is in the error."""
    with pytest.raises(FileNotFoundError, match="missing.log"):
        ApplyHistoryBest(tmp_path / "missing.log")


def test_pick_best(tmp_path: Path, samples: list[Any]) -> None:
    """The fastest of each workload remains, in the same file too; failures never."""
    path = tmp_path / "log.json"
    inp = samples[5][0]
    fast_failure = MeasureResult((1e-9,), MeasureErrorNo.RUNTIME_DEVICE, 0.0, 0.0)
    lines = [record.encode(*one) for one in [*reversed(samples), (inp, fast_failure)]]
    path.write_text("\n".join([TVM_LINE, *lines]) + "\n")
    record.pick_best(path, path)
    found = list(record.load_from_file(path))
    assert [one.task.name for one, _ in found] == ["conv2d_NCHWc.x86", "testing/matmul"]
    assert found[1][1].costs == (1,)
    assert [one.name for one in tmp_path.iterdir()] == ["log.json"]


def test_log_editor(tmp_path: Path, samples: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The program picks and splits; a missing file is an error, not a traceback."""
    path = tmp_path / "log.json"
    path.write_text("\n".join([TVM_LINE, TVM_LINE, record.encode(*samples[0])]) + "\n")
    assert autotvm_log_editor.main(["--act", "split", "--i", str(path)]) == 0
    names = capsys.readouterr().out.split()
    assert [len(Path(name).read_text().splitlines()) for name in names] == [1, 1]
    assert autotvm_log_editor.main(["--act", "pick", "--i", str(path), "--o", str(tmp_path / "best")]) == 0
    assert len((tmp_path / "best").read_text().splitlines()) == 2
    assert autotvm_log_editor.main(["--act", "pick", "--i", str(tmp_path / "none")]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_history_best(samples: list[Any]) -> None:
    """The fastest record of a workload answers, a user's own configuration before it; without a target, an error."""
    task, target = get_sample_task()
    best = ApplyHistoryBest(samples)
    assert str(best.query(target, task.workload)) == str(task.config_space.get(0))
    own = task.config_space.get(7)
    best.update(target, task.workload, own)
    assert best.query(target, task.workload) is own
    with pytest.raises(TilewrightError, match="depends on the target"):
        best.query(None, task.workload)


def test_a_record_slower_than_the_default_is_not_applied(samples: list[Any]) -> None:
    """Where the default was measured too and is faster, it is what counts."""
    inp, _ = samples[0]
    slow = [
        (
            MeasureInput(inp.target, inp.task, inp.task.config_space.get(index)),
            MeasureResult((cost,), 0, 0, 0),
        )
        for index, cost in ((0, 1.0), (5, 1.2), (6, 3.0))
    ]
    assert ApplyHistoryBest(slow).query(inp.target, inp.task.workload).index == 0


def test_tophub_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a folder are applied by default, with more files on top; without a folder nothing is."""
    (tmp_path / "llvm_v0.04.log").write_text(TVM_LINE + "\n")
    workload = record.decode(TVM_LINE)[0].task.workload
    assert isinstance(tophub.context("llvm"), tophub.EmptyContext)
    monkeypatch.setenv("TOPHUB_LOCATION", str(tmp_path))
    with tophub.context(Target("llvm")) as context:
        assert context.query(Target("llvm"), workload)["tile_ow"].size == [-1, 14]
    assert len(tophub.load_reference_log("llvm", "unknown", "conv2d_NCHWc.x86")) == 1
    with pytest.raises(TilewrightError, match="nothing is downloaded"):
        tophub.download_package(tmp_path, "cuda_v0.10.log")


def test_redis_is_refused() -> None:
    """The error names what to use instead."""
    with pytest.raises(TilewrightError, match="log_to_file"):
        autotvm.database.RedisDatabase()
