"""Samples are read row by row, and data that does not fit the model is refused with the reason."""

from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.quantization.data import Samples, read_labels
from tilewright.driver.quantization.model import parse_budget
from tilewright.driver.tvmc import TVMCException
from tilewright.driver.tvmc.tensors import TensorInfo

INPUT = [TensorInfo("x", (2, 3), "float32")]


def test_rows_make_samples(tmp_path):
    """As many rows as the batch has; files of a folder follow each other, and rows that are left over are not used."""
    values = np.arange(21, dtype="float32").reshape(7, 3)
    np.savez(tmp_path / "a.npz", x=values)
    np.save(tmp_path / "b.npy", values[:2])
    np.save(tmp_path / "c.npy", np.asfortranarray(values[:4]))
    samples = Samples(tmp_path, INPUT)
    found = [one["x"] for one in samples]
    assert samples.count == len(found) == 6 and len(list(samples)) == 6
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate([values[:6], values[:2], values[:4]]))
    assert len(list(Samples(tmp_path, INPUT, limit=2))) == 2


def test_a_file_is_not_read_as_a_whole(tmp_path, monkeypatch):
    """Only the bytes of the rows that are asked for."""
    np.savez(tmp_path / "a.npz", x=np.zeros((100_000, 3), "float32"))
    sizes = []
    frombuffer = np.frombuffer

    def counted(content, *rest):
        sizes.append(len(content))
        return frombuffer(content, *rest)

    monkeypatch.setattr(np, "frombuffer", counted)
    iterator = iter(Samples(tmp_path / "a.npz", INPUT))
    next(iterator), next(iterator)
    assert sizes == [24, 24]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"y": np.zeros((4, 3), "float32"), "z": np.zeros(4)},
            "has an array 'y', and the model no such input",
        ),
        ({"x": np.zeros((4, 5), "float32")}, r"shape \[4, 5\], and the model wants x float32\[2, 3\]"),
        ({"x": np.zeros((1, 3), "float32")}, r"shape \[1, 3\]"),
    ],
)
def test_data_that_does_not_fit(tmp_path, arrays, words):
    """Names and shapes."""
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(TVMCException, match=words):
        Samples(tmp_path / "a.npz", INPUT)


def test_missing_inputs_and_values(tmp_path):
    """An input that is not there, and values that are not numbers."""
    two = [*INPUT, TensorInfo("mask", (2,), "int64")]
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 3), "float32"))
    with pytest.raises(TVMCException, match="lacks the input mask"):
        Samples(tmp_path / "a.npz", two)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinite")):
        data = np.zeros((4, 3), "float32")
        data[3, 1] = value
        np.save(tmp_path / "b.npy", data)
        with pytest.raises(TVMCException, match=f"sample 1 of .*b.npy has {word}"):
            list(Samples(tmp_path / "b.npy", INPUT))
    np.savez(tmp_path / "c.npz", x=np.zeros((4, 3), "float32"), mask=np.full(4, 0.5))
    with pytest.raises(TVMCException, match="whole numbers"):
        list(Samples(tmp_path / "c.npz", two))


def test_no_data(tmp_path):
    """A path that is not there, a folder without data, a file that is damaged."""
    with pytest.raises(TVMCException, match="no data at"):
        Samples(tmp_path / "nothing", INPUT)
    with pytest.raises(TVMCException, match="has no data"):
        Samples(tmp_path, INPUT)
    (tmp_path / "a.npz").write_bytes(b"PK damaged")
    with pytest.raises(TVMCException, match="cannot be read"):
        Samples(tmp_path, INPUT)


def test_labels(tmp_path):
    """From a file, from a text, or from an array beside the data."""
    labels = np.array([3, 1, 2])
    np.save(tmp_path / "l.npy", labels)
    (tmp_path / "l.txt").write_text("3\n1\n2\n")
    np.savez(tmp_path / "d.npz", x=np.zeros((3, 3), "float32"), label=labels)
    data = tmp_path / "d.npz"
    for given, member in ((tmp_path / "l.npy", None), (tmp_path / "l.txt", None), (Path("label"), "label")):
        found, name = read_labels(str(given), data)
        assert found.tolist() == [3, 1, 2] and name == member
    with pytest.raises(TVMCException, match="did you mean .label"):
        read_labels("labl", data)
    with pytest.raises(TVMCException, match="one for each sample"):
        read_labels("x", data)


def test_budgets():
    """Per cent and shares."""
    assert parse_budget("0.5%") == parse_budget("0.005") == 0.005
    assert parse_budget(None) is None
    for text in ("half", "-1%", "5"):
        with pytest.raises(TVMCException, match="--budget"):
            parse_budget(text)
