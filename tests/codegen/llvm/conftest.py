"""What the tests of the LLVM code generator share: building a function and running it on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tilewright.codegen import build
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import Load, Ramp, Var
from tilewright.ir.module import IRModule
from tilewright.runtime.module import Module
from tilewright.support.dtype import DataType
from tilewright.target.target import Target
from tilewright.tir.buffer import decl_buffer
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import For, ForKind, Stmt, Store, stmt_seq
from tilewright.tir.transform.lower_tvm_builtin import LowerTVMBuiltin
from tilewright.tir.transform.make_packed_api import MakePackedAPI


class Kit:
    """Builds and runs loop programs in flat form."""

    def packed(
        self, params: Sequence[Any], body: Stmt, target: str = "llvm", name: str = "f", **attrs: Any
    ) -> IRModule:
        """The module with one exported function."""
        values = {"global_symbol": name, "tir.noalias": True, "target": Target(target), **attrs}
        return LowerTVMBuiltin()(
            MakePackedAPI()(IRModule({name: PrimFunc(list(params), body, attrs=values)}))
        )

    def build(
        self, params: Sequence[Any], body: Stmt, target: str = "llvm", name: str = "f", **attrs: Any
    ) -> Module:
        """The compiled module."""
        return build(self.packed(params, body, target, name, **attrs), target)

    def buffer(self, name: str, size: Any, dtype: str = "float32") -> Buffer:
        """A one-dimensional parameter that any aligned array fits."""
        element = DataType(dtype)
        return decl_buffer((size,), dtype, name, data_alignment=element.itemsize)

    def elementwise(
        self, function: Any, inputs: Sequence[np.ndarray], dtype: str, *, lanes: int = 1, target: str = "llvm"
    ) -> Any:
        """``function`` applied to each element (or to vectors of ``lanes`` elements) of arrays of one length.

        Of several functions, in a list, each one's result, compiled together.
        """
        functions = function if isinstance(function, list) else [function]
        size = len(inputs[0])
        assert size % lanes == 0
        sources = [self.buffer(f"x{k}", size, str(array.dtype)) for k, array in enumerate(inputs)]
        results = [self.buffer(f"y{k}", size, dtype) for k in range(len(functions))]
        i = Var("i")
        index: Any = i if lanes == 1 else Ramp(i * lanes, 1, lanes)
        values = [Load(source.dtype.with_lanes(lanes), source.data, index) for source in sources]
        stores = [
            Store(result.data, each(*values), index) for each, result in zip(functions, results, strict=True)
        ]
        body = For(i, 0, size // lanes, ForKind.SERIAL, stmt_seq(*stores))
        outputs = [np.zeros(size, dtype if dtype != "bool" else np.bool_) for _ in functions]
        self.build([*sources, *results], body, target)["f"](*inputs, *outputs)
        return outputs if isinstance(function, list) else outputs[0]


@pytest.fixture(scope="session")
def kit() -> Kit:
    """The builder."""
    return Kit()
