"""C source: the target ``c``, and the base of the other code generators that print source text."""

from tilewright.codegen.c.brought_source import brought_sources
from tilewright.codegen.c.host import CModule, generate_c, host_function_names
from tilewright.codegen.generator import register
from tilewright.codegen.source import SourceGenerator
from tilewright.ir.module import IRModule


def generate_with_brought_source(module: IRModule) -> str:
    """The source of a module's functions, after the C that they bring."""
    return "\n".join([*brought_sources(module.functions.values()), generate_c(module)])


register(
    SourceGenerator(
        "c",
        "c",
        generate_with_brought_source,
        host_function_names,
        CModule,
        makes_host_code=True,
        language="C",
    )
)
