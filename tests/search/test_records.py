"""Files of records: whatever happens to their writers, what was written stays."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tilewright.search import RecordFile
from tilewright.support.errors import TilewrightError


class Writer:
    """A process that appends records, and says after each that it is written."""

    def __init__(self, path: Path, name: str, count: int) -> None:
        reads, writes = os.pipe()
        self.number = os.fork()
        if self.number == 0:
            try:
                for number in range(count):
                    RecordFile(path).append([json.dumps([name, number, "x" * 3000])])
                    os.write(writes, f"{number}\n".encode())
            finally:
                os._exit(0)
        os.close(writes)
        self.said = os.fdopen(reads)

    def end(self) -> list[int]:
        """What it said until it ended."""
        with self.said:
            heard = [int(line) for line in self.said]
        os.waitpid(self.number, 0)
        return heard


def test_a_missing_file_is_empty_and_appends_make_it(tmp_path: Path) -> None:
    """Lines come back in order, with their numbers."""
    file = RecordFile(tmp_path / "records.json")
    assert list(file.lines()) == []
    file.append([])
    assert not file.path.exists()
    file.append(['{"a": 1}', "[2]"])
    file.append(["3"])
    assert [(line.number, line.text) for line in file.lines()] == [(1, '{"a": 1}'), (2, "[2]"), (3, "3")]


def test_a_record_is_one_line(tmp_path: Path) -> None:
    """Nothing of a batch is written if one of it is not."""
    file = RecordFile(tmp_path / "records.json")
    with pytest.raises(TilewrightError, match="one line"):
        file.append(["1", "a\nb"])
    assert not file.path.exists()


def test_half_a_line_at_the_end_is_skipped_and_repaired(tmp_path: Path) -> None:
    """Readers skip it, whole last lines without an end count, and the next append starts a line of its own."""
    file = RecordFile(tmp_path / "records.json")
    file.path.write_text('{"a": 1}\n{"b": 2}')
    assert [line.text for line in file.lines()] == ['{"a": 1}', '{"b": 2}']
    file.path.write_text('{"a": 1}\n{"b":')
    assert [line.text for line in file.lines()] == ['{"a": 1}']
    file.append(['{"c": 3}'])
    loaded = file.read(lambda value: value)
    assert loaded.records == [{"a": 1}, {"c": 3}]
    assert [problem.number for problem in loaded.problems] == [2]
    assert loaded.summary(file.path) == f"{file.path}: line 2 is skipped (not JSON)"


def test_bad_lines_are_reported_by_number(tmp_path: Path) -> None:
    """Those that are not JSON, not UTF-8, or refused by who reads them."""
    file = RecordFile(tmp_path / "records.json")
    file.path.write_bytes(b'{"a": 1}\n\xff\xfe\n\n{"b": 2}\n{"a": 3}\n')
    loaded = file.read(lambda value: value["a"])
    assert loaded.records == [1, 3]
    assert [(one.number, one.reason) for one in loaded.problems] == [(2, "not JSON"), (4, "'a'")]
    assert loaded.summary("r.json").endswith("and 1 further line")


def test_several_processes_append_at_once(tmp_path: Path) -> None:
    """Every record of every process is there, whole."""
    path = tmp_path / "records.json"
    writers = [Writer(path, name, 60) for name in "abc"]
    assert [writer.end() for writer in writers] == [list(range(60))] * 3
    loaded = RecordFile(path).read(lambda value: (value[0], value[1]))
    assert not loaded.problems
    assert sorted(loaded.records) == [(name, number) for name in "abc" for number in range(60)]
    # Each process's own records stand in its order.
    for name in "abc":
        assert [number for who, number in loaded.records if who == name] == list(range(60))


def test_a_killed_writer_loses_nothing_it_said_was_written(tmp_path: Path) -> None:
    """``kill -9`` at any moment, several times, with others appending."""
    path = tmp_path / "records.json"
    said = {}
    other = Writer(path, "other", 80)
    for attempt in range(8):
        writer = Writer(path, f"killed {attempt}", 1_000_000)
        for _ in range(3 + 2 * attempt):
            writer.said.readline()
        os.kill(writer.number, signal.SIGKILL)
        said[f"killed {attempt}"] = writer.end()[-1:]
    other.end()
    RecordFile(path).append([json.dumps(["last", 0, ""])])
    loaded = RecordFile(path).read(lambda value: (value[0], value[1]))
    found = set(loaded.records)
    assert {("other", number) for number in range(80)} | {("last", 0)} <= found
    for attempt in range(8):
        heard = max([2 + 2 * attempt, *said[f"killed {attempt}"]])
        assert {(f"killed {attempt}", number) for number in range(heard + 1)} <= found
    # Each kill leaves at most one line that is not whole.
    assert len(loaded.problems) <= 8
