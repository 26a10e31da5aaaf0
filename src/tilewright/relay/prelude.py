"""The prelude: lists, options, trees and tensor arrays in a module, and their lookup by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.type import GlobalTypeVar
from tilewright.relay.static_tensor_array import StaticTensorArrayOps, get_tensor_array_shape, static_name
from tilewright.relay.tensor_array import TensorArrayOps, constructor_named, dynamic_name

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]

FUNCTIONS = (
    "id",
    "compose",
    "flip",
    "hd",
    "tl",
    "nth",
    "update",
    "map",
    "foldl",
    "foldr",
    "foldr1",
    "concat",
    "filter",
    "zip",
    "rev",
    "map_accuml",
    "map_accumr",
    "unfoldl",
    "unfoldr",
    "sum",
    "length",
    "tmap",
    "size",
    "iterate",
)
"""The functions that are also attributes of a ``Prelude``."""


class Prelude:
    """The prelude in a module: ``Prelude(mod).map`` is the variable of its function ``map``.

    Tensor arrays of an element type are defined when one of their names is first requested.
    """

    id: GlobalVar
    compose: GlobalVar
    flip: GlobalVar
    hd: GlobalVar
    tl: GlobalVar
    nth: GlobalVar
    update: GlobalVar
    map: GlobalVar
    foldl: GlobalVar
    foldr: GlobalVar
    foldr1: GlobalVar
    concat: GlobalVar
    filter: GlobalVar
    zip: GlobalVar
    rev: GlobalVar
    map_accuml: GlobalVar
    map_accumr: GlobalVar
    unfoldl: GlobalVar
    unfoldr: GlobalVar
    sum: GlobalVar
    length: GlobalVar
    tmap: GlobalVar
    size: GlobalVar
    iterate: GlobalVar

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod if mod is not None else IRModule()
        self.load_prelude()

    def load_prelude(self) -> None:
        """Add the functions and types to the module, and make the functions attributes."""
        self.mod.import_from_std("prelude.rly")
        for name in FUNCTIONS:
            setattr(self, name, self.mod.get_global_var(name))

    def _require(self, dtype: str) -> None:
        """Define the tensor arrays of an element type."""
        if dynamic_name("tensor_array", dtype) not in self.mod:
            TensorArrayOps(self, dtype).register()

    def get_name(self, canonical: str, dtype: str) -> str:
        """The full name of something of the tensor arrays of an element type."""
        return dynamic_name(canonical, dtype)

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """A function on tensor arrays by its short name."""
        self._require(dtype)
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """A type of tensor arrays by its short name."""
        self._require(dtype)
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """A constructor of a type by its short name."""
        self._require(dtype)
        return constructor_named(self.mod, ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of the tensor type by its short name."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(
        self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> str:
        """The full name of something of the tensor arrays of an element type and shape."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> GlobalVar:
        """A function on tensor arrays of a shape by its short name; ``StaticTensorArrayOps`` defines it."""
        return self.mod.get_global_var(self.get_name_static(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> GlobalTypeVar:
        """A type of tensor arrays of a shape by its short name."""
        return self.mod.get_global_type_var(self.get_name_static(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of a type, both by their short names."""
        owner = self.get_name_static(ty_name, dtype, shape)
        return constructor_named(self.mod, owner, self.get_name_static(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of the tensor type of a shape by its short name."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)
