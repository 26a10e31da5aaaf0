"""The constants' region, as bytes and as text that holds them."""

import re

from tilewright.relay.backend.aot.constants import as_c, as_llvm

CONTENT = bytes(range(256)) + b"\x00\xff" * 10


def test_as_c() -> None:
    """The numbers in the C text are the bytes, in order."""
    text = as_c("f", CONTENT)
    assert f"uint8_t f_data[{len(CONTENT)}] = {{" in text
    numbers = text[text.index("= {") : text.index("};")]
    assert bytes(int(number) for number in re.findall(r"\d+", numbers)) == CONTENT
    assert "static void* f(void)" in text


def test_as_llvm() -> None:
    """The escapes in the LLVM IR are the bytes, in order."""
    text = as_llvm("f", CONTENT)
    escaped = text[text.index('c"') + 2 : text.index('", align 64')]
    assert bytes.fromhex(escaped.replace("\\", "")) == CONTENT
    assert f"[{len(CONTENT)} x i8]" in text and "ptr @f()" in text
