"""Tables fit the width that they are printed in, and lose nothing."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.driver.cli.tables import display_width, table_lines, wrapped

KERNEL = [
    "nn_contrib_conv2d_NCHWc_add_nn_relu_0123abcd",
    "1.18 ms",
    "54.2%",
    "204",
    "compute",
    "Conv c4, Relu c4r",
]
COLUMNS = ["kernel", "time", "share", "GFLOP/s", "bound by", "nodes of the model"]


def test_any_width_is_one_line_a_row():
    """A file or a pipe gets every row whole."""
    head, body = table_lines(COLUMNS, [KERNEL])
    assert len(head) == len(body) == 1 and all(cell in body[0] for cell in KERNEL)


@pytest.mark.parametrize("width", [100, 80, 60, 40])
def test_a_row_of_kernels_fits(width):
    """Columns of words are wrapped, then stand on their own lines; every cell is still there."""
    head, body = table_lines(COLUMNS, [KERNEL, KERNEL], width)
    assert max(map(display_width, head + body)) <= width
    for cell in KERNEL:
        assert all(word in "\n".join(body) for word in re.findall("[a-zA-Z0-9.%]+", cell))


def test_narrow_columns_are_not_broken():
    """At 60 columns the numbers of a kernel still stand side by side under their headings."""
    head, body = table_lines(COLUMNS, [KERNEL], 60)
    assert any(re.search(r"1\.18 ms +54\.2% +204 +compute", line) for line in body)
    assert any(re.search("time +share +GFLOP/s", line) for line in head)


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("a_long_name", 7, ["a_long_", "name"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("12.7 ms", 5, ["12.7", "ms"]),
        ("", 5, [""]),
        ("ありがとう", 4, ["あり", "がと", "う"]),
    ],
)
def test_text_is_wrapped_between_words(text, width, lines):
    """A word is broken only if no line has room for it; wide characters count as two."""
    assert wrapped(text, width) == lines


@given(
    st.integers(1, 6).flatmap(
        lambda count: st.tuples(
            st.lists(st.text("ab c", max_size=12), min_size=count, max_size=count),
            st.lists(st.lists(st.text("xy_/ .", max_size=40), min_size=count, max_size=count), max_size=4),
        )
    ),
    st.integers(20, 120),
)
def test_every_table_fits(table, width):
    """Whatever the cells are: no line is too wide, and no letter is lost."""
    columns, rows = table
    head, body = table_lines(columns, rows, width)
    assert all(display_width(line) <= width for line in head + body)
    kept = re.sub("[^xy]", "", "".join(body))
    assert sorted(kept) == sorted(re.sub("[^xy]", "", "".join(cell for row in rows for cell in row)))


def on_a_terminal(width, *arguments):
    """What a command shows on a terminal of this width, without the colours; and with them."""
    main_end, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", *arguments],
        stdin=end,
        stdout=end,
        stderr=subprocess.DEVNULL,
        env={**environment, "TERM": "xterm"},
    )
    os.close(end)
    shown = b""
    while True:
        try:
            part = os.read(main_end, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(main_end)
    assert process.wait() == 0
    text = shown.decode().replace("\r\n", "\n")
    return re.sub("\x1b\\[[0-9;]*m", "", text), text


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize(
    "arguments",
    [
        ["targets"],
        ["targets", "--cpus"],
        ["targets", "--kind", "llvm"],
        ["doctor"],
        ["cache"],
        ["opt", "--list-passes"],
    ],
    ids=" ".join,
)
def test_commands_fit_the_terminal(width, arguments):
    """Each table of the command line, on a pseudo-terminal."""
    plain, _ = on_a_terminal(width, *arguments)
    assert plain.strip() and max(map(display_width, plain.splitlines())) <= width


@pytest.mark.parametrize("width", [80, 60])
def test_profiles_fit_the_terminal(width, small_package):
    """The widest of the tables: bold on a terminal, and fitted."""
    plain, coloured = on_a_terminal(width, "profile", small_package, "--repeat", "1")
    assert max(map(display_width, plain.splitlines())) <= width and "\x1b[1m" in coloured
    assert "GFLOP/s" in plain and "the median of 1" in re.sub(r"\s+", " ", plain)


def test_pipes_get_every_name_and_no_colours(small_package):
    """In a pipe nothing is shortened, whatever COLUMNS says."""
    ran = subprocess.run(
        [sys.executable, "-m", "tilewright", "profile", small_package, "--repeat", "1"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "40"},
    )
    assert "\x1b" not in ran.stdout and "…" not in ran.stdout
    assert any(len(line) > 80 for line in ran.stdout.splitlines())
