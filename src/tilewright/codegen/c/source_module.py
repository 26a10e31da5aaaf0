"""``CSourceModule``: C source of other code generators, compiled with the system's compiler, or with zig.

It runs here as well: it is compiled and linked into this process when it is first called. ``C_PRELUDE`` declares the
structures of the calling convention; a function ``f`` is
``int32_t __tvm_ffi_f(void* self, const any* args, int32_t num_args, any* result)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tilewright.codegen.c.host import CModule
from tilewright.runtime.loading import ObjectModule
from tilewright.runtime.registry import register_func

C_PRELUDE = """\
#include <math.h>
#include <stdint.h>

typedef struct {
  void* data;
  struct { int32_t device_type, device_id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} tensor;

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union { int64_t v_int64; double v_float64; void* v_ptr; };
} any;
"""


class CSourceModule(CModule):
    """C source with the names of its functions."""

    def __init__(
        self, source: str, function_names: Sequence[str] = (), *, format: str = "c", type_key: str = "c"
    ) -> None:
        super().__init__(source, format=format, type_key=type_key, function_names=function_names)

    @cached_property
    def _code(self) -> bytes:
        return super().object_code()

    @cached_property
    def _linked(self) -> ObjectModule:
        return ObjectModule([self._code], f"the code of {', '.join(self.function_names)}")

    def object_code(self) -> bytes:
        """The machine code, compiled once."""
        return self._code

    def _why_not_runnable(self) -> None:
        return None

    def _address_of(self, symbol: str) -> int:
        return self._linked._address_of(symbol)

    def _owner(self) -> object:
        return self._linked._owner()


@register_func("runtime.CSourceModuleCreate")
def create(
    source: str, format: str = "c", function_names: Sequence[str] = (), *rest: object
) -> CSourceModule:
    """The module of a source, under the name and with the arguments that code generators for TVM use."""
    return CSourceModule(source, [str(name) for name in function_names], format=format)
