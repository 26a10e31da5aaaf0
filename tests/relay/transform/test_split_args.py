"""SplitArgs."""

from tests.relay.transform.text import check, unchanged

from tilewright.relay.transform import SplitArgs

FIVE = "def @main(%x: $T) { concatenate((%x, %x, %x, %x, %x)) }"


def test_long_concatenations_are_split() -> None:
    """Parts are not fused with what joins them; a part of one tensor is that tensor."""
    check(
        FIVE,
        SplitArgs(4),
        """
        def @main(%x: $T) {
          %0 = annotation.stop_fusion(concatenate((%x, %x, %x)));
          %1 = annotation.stop_fusion(concatenate((%x, %x)));
          concatenate((%0, %1))
        }
        """,
    )
    check(
        FIVE,
        SplitArgs(3),
        """
        def @main(%x: $T) {
          %0 = annotation.stop_fusion(concatenate((%x, %x)));
          %1 = annotation.stop_fusion(concatenate((%x, %x)));
          %2 = annotation.stop_fusion(concatenate((%0, %1)));
          concatenate((%2, %x))
        }
        """,
    )


def test_short_ones_and_no_limit() -> None:
    """Nothing changes."""
    unchanged(FIVE, SplitArgs(6))
    unchanged(FIVE, SplitArgs(-1))
