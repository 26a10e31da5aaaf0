"""Coprocessor scopes are refused; everything else passes through."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.coproc_sync import CoProcSync


def test_coprocessor_scope_is_an_error(apply):
    """A program that runs code on a coprocessor has no target here."""
    a = tir.Var("A", "handle")
    store = tir.Store(a, 1, 0)
    assert apply(tir.PrimFunc([a], store), CoProcSync()).body is store
    with pytest.raises(LoweringError, match="coprocessor"):
        apply(tir.PrimFunc([a], tir.AttrStmt(a, "coproc_scope", 1, store)), CoProcSync())
