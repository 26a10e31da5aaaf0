"""Executors and runtimes as values."""

import pytest

from tilewright.relay.backend.options import Executor, Runtime
from tilewright.support.errors import TilewrightError


def test_options_have_defaults_and_types() -> None:
    """What is not given has its default; a wrong name or type is said."""
    executor = Executor("aot", {"interface-api": "c"})
    assert str(executor) == "aot" and executor["interface-api"] == "c" and not executor["link-params"]
    assert "unpacked-api" not in executor and executor == Executor("aot", {"interface-api": "c"})
    assert Runtime("c", {"system-lib": True}) != Runtime("c") and "crt" in Runtime.list_runtimes()
    assert Executor.list_executor_options(executor)["interface-api"] == "runtime.String"
    with pytest.raises(TilewrightError, match='Executor "tree" is not defined; there are: graph, aot'):
        Executor("tree")
    with pytest.raises(TilewrightError, match='"bark" is not available on this Runtime; it has: system-lib'):
        Runtime("cpp", {"bark": 1})
    with pytest.raises(TilewrightError, match='should have type "IntImm" but instead found "runtime.String"'):
        Runtime("cpp", {"system-lib": "yes"})
