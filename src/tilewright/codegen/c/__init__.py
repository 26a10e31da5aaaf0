"""C source: the target ``c``, and the base of the other code generators that print source text."""

from tilewright.codegen.c.host import build_c, generate_c
