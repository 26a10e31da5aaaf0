"""Scripts for shells, from the parser itself."""

import os
import pty
import re
import select
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
        (
            ["tilewright", "compile", "--target", "nvidia/jetson-n"],
            {"nvidia/jetson-nano", "nvidia/jetson-nano-cpu"},
        ),
        (["tilewright", "compile", "--target", "=", "web"], {"webgpu"}),
        (["tilewright", "targets", "--kind", "ll"], {"llvm"}),
        (["tilewright", "opt", "--model-format", "on"], {"onnx"}),
        (["tilewright", "opt", "--passes", "FuseOps,FoldC"], {"FuseOps,FoldConstant"}),
        (["tilewright", "compile", "--dump-code", "relay,l"], {"relay,ll"}),
        (["tilewright", "compile", "--target-llvm-mcpu", "znver4"], {"znver4"}),
        (["tilewright", "compile", "--pass-config", "relay.winograd"], {"relay.winograd.largest_tile="}),
        (["tilewright", "profile", "--executor", ""], {"graph", "vm"}),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(words, expected, capsys, tmp_path, monkeypatch):
    """Commands, options, and the words that an option or a command takes."""
    monkeypatch.chdir(tmp_path)
    assert set(completed(words, capsys)) == expected


def typed(text, script_path, folder):
    """What stands on the line of an interactive bash after a text and the key for completion."""
    main_end, end = pty.openpty()
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=end,
        stdout=end,
        stderr=end,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "TERM": "dumb", "PS1": "$ ", "INPUTRC": "/dev/null", "HISTFILE": ""},
        start_new_session=True,
    )
    os.close(end)
    try:
        # The line that completion leaves is printed as the argument of echo, not run.
        os.write(main_end, f'source {script_path}; tilewright() {{ echo "<$*>"; }}\n{text}\t\n'.encode())
        seen = b""
        while not (found := re.search(rb"<([^$*>]*)>", seen)):
            ready, _, _ = select.select([main_end], [], [], 10)
            assert ready, seen
            seen += os.read(main_end, 4096)
        return found[1].decode()
    finally:
        process.kill()
        process.wait()
        os.close(main_end)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tilewright prof", "profile"),
        ("tilewright compile --target nvidia/jetson-n", "compile --target nvidia/jetson-nano"),
        ("tilewright compile --target=webg", "compile --target=webgpu"),
        ("tilewright opt --passes FuseOps,FoldC", "opt --passes FuseOps,FoldConstant"),
        (
            "tilewright compile --pass-config relay.winograd.l",
            "compile --pass-config relay.winograd.largest_tile=",
        ),
        ("tilewright inspect my", "inspect my model.onnx"),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_key_completes_in_a_terminal(text, line, capsys, tmp_path):
    """In an interactive shell: values, lists, names with an equals sign, and files whose names need quotes."""
    (tmp_path / "my model.onnx").touch()
    (tmp_path / "complete.sh").write_text(script("bash", capsys))
    assert typed(text, tmp_path / "complete.sh", tmp_path) == line


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
    assert "nvidia/jetson-nano" in text and "FoldConstant" in text and "znver4" in text
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n", "/dev/stdin"], input=text, text=True, check=True)
