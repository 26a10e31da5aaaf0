"""Triples as people write them, and what LLVM and zig are told."""

import pytest

from tilewright.support.triple import Triple, host_triple, is_host


@pytest.mark.parametrize(
    ("written", "llvm", "zig", "suffix"),
    [
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc", "x86_64-windows-gnu", ".dll"),
        ("x86_64-windows-gnu", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", ".dll"),
        ("x86_64-windows-msvc", "x86_64-pc-windows-msvc", "x86_64-windows-gnu", ".dll"),
        ("x86_64-w64-mingw32", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", ".dll"),
        ("x86_64-pc-win32", "x86_64-pc-windows-msvc", "x86_64-windows-gnu", ".dll"),
        ("i386-pc-win32", "i686-pc-windows-gnu", "x86-windows-gnu", ".dll"),
        ("arm64-pc-windows-msvc", "aarch64-pc-windows-msvc", "aarch64-windows-gnu", ".dll"),
        ("arm64-apple-darwin", "arm64-apple-darwin", "aarch64-macos", ".dylib"),
        ("x86_64-apple-darwin20.6", "x86_64-apple-darwin20.6", "x86_64-macos", ".dylib"),
        ("x86_64-apple-macosx", "x86_64-apple-macosx", "x86_64-macos", ".dylib"),
        ("aarch64-macos", "arm64-apple-macosx", "aarch64-macos", ".dylib"),
        ("arm-linux-gnueabihf", "arm-unknown-linux-gnueabihf", "arm-linux-gnueabihf", ".so"),
        ("armv7l-linux-gnueabihf", "armv7l-unknown-linux-gnueabihf", "arm-linux-gnueabihf", ".so"),
        ("aarch64-linux-android", "aarch64-unknown-linux-android", "aarch64-linux-android", ".so"),
        ("amd64-linux", "x86_64-unknown-linux", "x86_64-linux-gnu", ".so"),
        ("x86_64-alpine-linux-musl", "x86_64-alpine-linux-musl", "x86_64-linux-musl", ".so"),
        ("wasm32-wasi", "wasm32-unknown-wasi", "wasm32-wasi", ".wasm"),
        ("thumbv7em-none-eabihf", "thumbv7em-unknown-unknown-eabihf", "thumb-freestanding", ".so"),
    ],
)
def test_every_spelling(written: str, llvm: str, zig: str, suffix: str) -> None:
    """LLVM reads triples by position, so its form has every part; zig's and the suffix follow from the system."""
    triple = Triple.parse(written)
    assert (triple.llvm, triple.zig_target, triple.library_suffix) == (llvm, zig, suffix)
    assert Triple.parse(llvm).llvm == llvm


def test_the_order_of_the_words_does_not_decide_what_is_the_host() -> None:
    """Spellings of one machine are the same machine."""
    assert is_host("x86_64-linux-gnu") == is_host("amd64-pc-linux-gnu") == is_host("x86_64-unknown-linux")


def test_another_c_library_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for musl or Android is not linked with this machine's glibc."""
    machine = host_triple().machine
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.36"))
    assert is_host(f"{machine}-{host_triple().system}-gnu")
    assert not is_host(f"{machine}-linux-musl") and not is_host(f"{machine}-linux-android21")


@pytest.mark.parametrize(
    "triple", ["aarch64-linux-android21", "armv7a-linux-androideabi19", "arm64-apple-ios"]
)
def test_zig_has_no_libraries_of_phones(triple: str) -> None:
    """They come with the NDK and Xcode."""
    assert not Triple.parse(triple).zig_has_libraries
    assert Triple.parse("aarch64-linux-musl").zig_has_libraries
