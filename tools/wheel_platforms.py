"""The platforms that wheels are built for: their tags, how ``zig cc`` calls them, and the library in the wheel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """One platform. ``zig_target`` has the oldest system that the library is to load on."""

    name: str
    tags: tuple[str, ...]
    zig_target: str
    triple: str
    library: str

    @property
    def wheel_tag(self) -> str:
        """The last part of a wheel's file name."""
        return ".".join(self.tags)

    @property
    def system(self) -> str:
        """linux, macos or windows."""
        return self.name.partition("-")[0]


PLATFORMS = {
    one.name: one
    for one in (
        Platform(
            "linux-x86_64",
            ("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
            "x86_64-linux-gnu.2.17",
            "x86_64-unknown-linux-gnu",
            "libtilewright_runtime.so",
        ),
        Platform(
            "linux-aarch64",
            ("manylinux_2_17_aarch64", "manylinux2014_aarch64"),
            "aarch64-linux-gnu.2.17",
            "aarch64-unknown-linux-gnu",
            "libtilewright_runtime.so",
        ),
        Platform(
            "macos-x86_64",
            ("macosx_11_0_x86_64",),
            "x86_64-macos.11.0",
            "x86_64-apple-darwin",
            "libtilewright_runtime.dylib",
        ),
        Platform(
            "macos-arm64",
            ("macosx_11_0_arm64",),
            "aarch64-macos.11.0",
            "aarch64-apple-darwin",
            "libtilewright_runtime.dylib",
        ),
        Platform(
            "windows-x86_64",
            ("win_amd64",),
            "x86_64-windows-gnu",
            "x86_64-pc-windows-gnu",
            "tilewright_runtime.dll",
        ),
    )
}
"""By name, as ``TILEWRIGHT_WHEEL_PLATFORM`` and ``build_wheels.py`` take it."""
