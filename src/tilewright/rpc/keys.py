"""Pre-shared keys: 32 random bytes, as 64 hexadecimal digits in a file or in the environment."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from tilewright.rpc.noise import KEY_BYTES
from tilewright.support.errors import RPCError
from tilewright.support.options import rpc_key, rpc_key_file


def generate_key() -> str:
    """A new key, as text."""
    return secrets.token_hex(KEY_BYTES)


def parse_key(written: str, where: str) -> bytes:
    """The key of its text."""
    digits = written.strip()
    if not re.fullmatch(f"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", digits):
        raise RPCError(
            f"{where} has no key: a key is {2 * KEY_BYTES} hexadecimal digits, as `tilewright rpc keygen` makes"
        )
    return bytes.fromhex(digits)


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file, which only its owner may be able to read."""
    file = Path(path)
    try:
        mode = file.stat().st_mode
        written = file.read_text(errors="replace")
    except OSError as error:
        raise RPCError(f"cannot read the key file {file}: {error.strerror}") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise RPCError(
            f"others can read the key file {file}: chmod 600 {file}, and make a new key if they are not trusted"
        )
    return parse_key(written, f"the key file {file}")


def write_key(path: str | os.PathLike[str]) -> None:
    """Writes a new key to a new file that only its owner can read."""
    file = Path(path)
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RPCError(
            f"{file} exists, and a key is not overwritten: delete it, or name another file"
        ) from None
    except OSError as error:
        raise RPCError(f"cannot write the key file {file}: {error.strerror}") from error
    with os.fdopen(number, "w") as opened:
        opened.write(generate_key() + "\n")


def find_key(path: str | os.PathLike[str] | None = None) -> bytes | None:
    """The key in a file, else in ``TILEWRIGHT_RPC_KEY_FILE``, else in ``TILEWRIGHT_RPC_KEY``; None without any."""
    if path is not None:
        return read_key(path)
    named = rpc_key_file()
    if named is not None:
        return read_key(named)
    written = rpc_key()
    return parse_key(written, "TILEWRIGHT_RPC_KEY") if written else None
