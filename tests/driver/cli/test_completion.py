"""Scripts for shells, from the parser itself."""

import shutil
import subprocess

import pytest

from tilewright.driver.cli import main


def script(shell, capsys):
    """What the command prints."""
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(words, capsys):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script('bash', capsys)}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
        '_tilewright; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tilewright", "comp"], {"compile", "completion"}),
        (["tilewright", "compile", "--output-"], {"--output-format"}),
        (["tilewright", "compile", "--executor", ""], {"graph", "vm", "aot"}),
        (["tilewright", "run", "--fill-mode", "z"], {"zeros"}),
        (["tilewright", "cache", "cl"], {"clear"}),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(words, expected, capsys, tmp_path, monkeypatch):
    """Commands, options, and the words that an option or a command takes."""
    monkeypatch.chdir(tmp_path)
    assert set(completed(words, capsys)) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_and_option_is_there(shell, capsys):
    """The scripts name every command, and options with what they take."""
    text = script(shell, capsys)
    for command in (
        "demo",
        "compile",
        "run",
        "inspect",
        "opt",
        "tune",
        "doctor",
        "targets",
        "cache",
        "completion",
    ):
        assert command in text
    assert "dump-code" in text and "NCHW NHWC" in text and "print-top" in text
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n", "/dev/stdin"], input=text, text=True, check=True)
