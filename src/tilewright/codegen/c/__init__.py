"""C source: the target ``c``, and the base of the other code generators that print source text."""

from tilewright.codegen.c.host import CModule, generate_c, host_function_names
from tilewright.codegen.generator import register
from tilewright.codegen.source import SourceGenerator

register(
    SourceGenerator("c", "c", generate_c, host_function_names, CModule, makes_host_code=True, language="C")
)
