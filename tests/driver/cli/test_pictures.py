"""Pictures of characters."""

import numpy as np

from tilewright.driver.cli.pictures import PLAIN, picture, side_by_side, terminal_characters


def test_two_rows_of_pixels_are_one_of_characters():
    """The upper pixel, the lower, both and none each have a character; an odd row is alone."""
    pixels = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]], "float32")
    assert picture(pixels) == ["▀▄█ ", "▀▀  "]
    assert picture(pixels, PLAIN) == ["'.: ", "''  "]


def test_blocks_stand_side_by_side():
    """Shorter blocks are filled up, and lines end where their text does."""
    assert side_by_side([["ab", "c"], ["d"]], gap=1) == "ab d\nc"


def test_terminals_without_block_characters_get_plain_ones(monkeypatch):
    """An ASCII terminal is not given what it cannot show."""

    class Ascii:
        encoding = "ascii"

    monkeypatch.setattr("tilewright.driver.cli.pictures.sys.stdout", Ascii())
    assert terminal_characters() == PLAIN
