"""Keys are made and read carefully."""

import os
import stat

import pytest

from tilewright.driver.cli import main
from tilewright.rpc.keys import find_key, generate_key, read_key, write_key
from tilewright.support.errors import RPCError


def test_a_written_key_is_the_owners_only(tmp_path):
    write_key(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert len(read_key(tmp_path / "key")) == 32
    with pytest.raises(RPCError, match="not overwritten"):
        write_key(tmp_path / "key")


def test_a_key_that_others_can_read_is_refused(tmp_path):
    write_key(tmp_path / "key")
    os.chmod(tmp_path / "key", 0o640)
    with pytest.raises(RPCError, match="chmod 600"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize("content", ["", "abc", "g" * 64, "a" * 63, "a" * 66])
def test_what_is_not_a_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_text(content)
    os.chmod(tmp_path / "key", 0o600)
    with pytest.raises(RPCError, match="64 hexadecimal digits"):
        read_key(tmp_path / "key")


def test_the_environment_names_a_key(tmp_path, monkeypatch):
    assert find_key() is None
    digits = generate_key()
    monkeypatch.setenv("TILEWRIGHT_RPC_KEY", digits)
    assert find_key() == bytes.fromhex(digits)
    write_key(tmp_path / "key")
    monkeypatch.setenv("TILEWRIGHT_RPC_KEY_FILE", str(tmp_path / "key"))
    assert find_key() == read_key(tmp_path / "key") != bytes.fromhex(digits)


def test_keygen_command(tmp_path, capsys):
    assert main(["rpc", "keygen", str(tmp_path / "key")]) == 0
    assert len(read_key(tmp_path / "key")) == 32
    assert (tmp_path / "key").read_text().strip() not in capsys.readouterr().out
    assert main(["rpc", "keygen"]) == 0
    assert len(bytes.fromhex(capsys.readouterr().out.strip())) == 32
