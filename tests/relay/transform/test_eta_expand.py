"""EtaExpand."""

from tests.relay.transform.text import check, unchanged

from tilewright.relay.transform import EtaExpand

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


def test_functions_as_values() -> None:
    """Become functions that call them; calls stay."""
    before = """
        def @aux(%x: $T) -> $T { %x }
        def @main(%x: $T) -> (fn ($T) -> $T, $T) { (@aux, @aux(%x)) }
        """
    check(
        before,
        EtaExpand(expand_global_var=True),
        """
        def @aux(%x: $T) -> $T { %x }
        def @main(%x: $T) -> (fn ($T) -> $T, $T) { (fn (%y: $T) -> $T { @aux(%y) }, @aux(%x)) }
        """,
    )
    unchanged(before, EtaExpand(expand_constructor=True))


def test_constructors_as_values() -> None:
    """Generic like their data type."""
    before = LIST + "def @main[A]() -> fn (A, List[A]) -> List[A] { Cons }"
    check(
        before,
        EtaExpand(expand_constructor=True),
        LIST
        + """
        def @main[A]() -> fn (A, List[A]) -> List[A] {
          fn [B](%x: B, %xs: List[B]) -> List[B] { Cons(%x, %xs) }
        }
        """,
    )
    unchanged(before, EtaExpand())
