"""Linking for WebAssembly: one file with the functions, the runtime and the model, for a host such as a browser.

WebAssembly loads no libraries, so the functions are linked with the runtime and registered when the file starts
(``_initialize``). The host calls the exported functions of ``tilewright.h``; ``tilewright_open("")`` opens the model
that is linked in.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tilewright.support.cbuild import SOURCES, embedded_objects, find_compiler

EXPORTS: Final = (
    "malloc",
    "free",
    "tilewright_error_kind",
    "tilewright_error_message",
    "tilewright_open",
    "tilewright_close",
    "tilewright_session_num_inputs",
    "tilewright_session_num_outputs",
    "tilewright_session_input_info",
    "tilewright_session_output_info",
    "tilewright_session_set_input",
    "tilewright_session_run",
    "tilewright_session_output",
    "tilewright_session_copy_output",
    "tilewright_function_call",
    "tilewright_object_release",
    "tilewright_system_symbol",
    "tilewright_tensor_create",
    "tilewright_tensor_dltensor",
)
"""What a host may call beside the compiled functions, ``__tvm_ffi_<name>``."""

_SOURCE = """\
/* Written by export_library: tells the runtime what is linked in. */
#include "tilewright.h"
{declarations}
{imports}
__attribute__((constructor)) static void register_all(void) {{
{registrations}
}}
"""


def _source(functions: Sequence[str], imports: Path | None) -> str:
    symbols = [f"__tvm_ffi_{name}" for name in functions]
    signature = "(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);"
    registrations = [
        f'  tilewright_register_system_symbol("{name}", (void*)(uintptr_t){name});' for name in symbols
    ]
    data = ""
    if imports is not None:
        data = (
            f'static const unsigned char imports[] = {{\n#embed "{imports.as_posix()}"\n}};\n'
            "static const uint64_t imports_size = sizeof imports;\n"
        )
        registrations += [
            '  tilewright_register_system_symbol("__tilewright_imports", (void*)(uintptr_t)imports);',
            '  tilewright_register_system_symbol("__tilewright_imports_size", (void*)(uintptr_t)&imports_size);',
        ]
    return _SOURCE.format(
        declarations="\n".join(f"int32_t {name}{signature}" for name in symbols),
        imports=data,
        registrations="\n".join(registrations),
    )


def link_wasm(
    output: Path,
    objects: Sequence[Path],
    functions: Sequence[str],
    imports: bytes,
    folder: Path,
    triple: str,
    options: Sequence[str],
) -> None:
    """Links a module into one file; ``imports`` are the modules that travel as data, ``folder`` is scratch space."""
    data = folder / "imports.bin" if imports else None
    if data is not None:
        data.write_bytes(imports)
    source = folder / "program.c"
    source.write_text(_source(functions, data))
    exported = [f"-Wl,--export={name}" for name in (*EXPORTS, *(f"__tvm_ffi_{name}" for name in functions))]
    flags = ("-mexec-model=reactor", "-std=c11", "-O2", "-s", "-Wno-c23-extensions", "-DTILEWRIGHT_EMBEDDED")
    parts: list[str | Path] = [*flags, "-I", SOURCES, source, *objects, *embedded_objects(triple)]
    find_compiler(triple).run([*parts, *exported, "-o", output, *options])
