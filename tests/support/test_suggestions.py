"""Words that may have been meant."""

import pytest

from tilewright.ir.op import Op
from tilewright.support.errors import OpError
from tilewright.support.suggestions import closest, did_you_mean


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("lvm", "llvm"),
        ("LLVM", "llvm"),
        ("raspbery-pi", "raspberry-pi/4b-64"),
        ("nothing like it", None),
    ],
)
def test_closest_word(word, found):
    """In any case, and where only the beginning of a longer word is given."""
    assert closest(word, ["llvm", "cuda", "raspberry-pi/4b-64"]) == found


def test_clause():
    """What is put into a message, or nothing."""
    assert did_you_mean("cudda", ["cuda"]) == " (did you mean 'cuda'?)"
    assert did_you_mean("zzz", ["cuda"]) == ""


def test_operators_are_proposed():
    """A misspelt operator."""
    with pytest.raises(OpError, match=r"did you mean 'nn.conv2d'\?"):
        Op.get("nn.conv2")
