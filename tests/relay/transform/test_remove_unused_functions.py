"""RemoveUnusedFunctions."""

import pytest
from tests.relay.transform.text import check, module, unchanged

from tilewright.relay.transform import RemoveUnusedFunctions
from tilewright.support.errors import TilewrightError

PROGRAM = """
def @helper(%x: $T) { exp(%x) }
def @alone(%x: $T) { @helper(%x) }
def @main(%x: $T) { @helper(%x) }
"""


def test_what_main_does_not_reach_goes() -> None:
    """Even if it calls something that stays."""
    check(
        PROGRAM,
        RemoveUnusedFunctions(),
        """
        def @helper(%x: $T) { exp(%x) }
        def @main(%x: $T) { @helper(%x) }
        """,
    )


def test_other_entries() -> None:
    """All that are named keep what they call."""
    made = RemoveUnusedFunctions(["alone"])(module(PROGRAM))
    assert {name.name_hint for name in made.functions} == {"alone", "helper"}
    unchanged(PROGRAM, RemoveUnusedFunctions(["main", "alone"]))
    with pytest.raises(TilewrightError, match="no function gone"):
        RemoveUnusedFunctions(["gone"])(module(PROGRAM))


def test_a_module_without_main_stays() -> None:
    """There is no entry to begin at."""
    unchanged("def @f(%x: $T) { exp(%x) }", RemoveUnusedFunctions())


def test_recursion_among_unused_functions() -> None:
    """Functions that only call one another go."""
    check(
        """
        def @a(%x: $T) -> $T { @b(%x) }
        def @b(%x: $T) -> $T { @a(%x) }
        def @main(%x: $T) { %x }
        """,
        RemoveUnusedFunctions(),
        "def @main(%x: $T) { %x }",
    )
