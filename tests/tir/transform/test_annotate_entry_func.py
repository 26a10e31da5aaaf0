"""The entry of a module is marked."""

from tilewright import tir
from tilewright.ir.module import IRModule
from tilewright.tir.transform.annotate_entry_func import AnnotateEntryFunc


def marked(*names):
    functions = {name: tir.PrimFunc([], tir.Evaluate(0), attrs={"global_symbol": name}) for name in names}
    module = AnnotateEntryFunc()(IRModule(functions))
    return [name for name in names if module[name].attrs.get("tir.is_entry_func")]


def test_the_only_function():
    """One function is the entry whatever its name."""
    assert marked("anything") == ["anything"]


def test_main_among_several():
    """Among several it is the one called main, if there is one."""
    assert marked("a", "main", "b") == ["main"]
    assert marked("a", "b") == []
