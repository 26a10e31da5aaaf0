"""Places in sources."""

from pathlib import Path

from tilewright.support.span import SourceName, Span, user_span


def test_text_of_a_span(tmp_path: Path) -> None:
    """A span prints as file, line and column, and the line itself where it can be read."""
    source = tmp_path / "program.txt"
    source.write_text("first\n  second line\n")
    assert str(Span(SourceName(str(source)), 2, 2, 3, 9)) == f"{source}:2:3: second line"
    assert str(Span(SourceName("nowhere"), 2, 2, 0, 0)) == "nowhere:2"


def test_user_span_is_the_callers_line() -> None:
    """The nearest frame outside the package is here."""
    found = user_span()
    assert found is not None
    assert found.source_name.name == __file__
    assert "found = user_span()" in str(found)
