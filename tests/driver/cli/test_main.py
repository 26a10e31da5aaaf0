"""The command line: arguments, tables, JSON and exit codes."""

import json
import subprocess
import sys

import pytest

from tilewright import codegen
from tilewright.driver.cli import main, make_parser
from tilewright.target import Target


def test_no_command_prints_help(capsys):
    """Without a command, the help is shown and the exit code is that of wrong arguments."""
    assert main([]) == 2
    printed = capsys.readouterr().out
    for command in (
        "demo",
        "doctor",
        "targets",
        "compile",
        "run",
        "tune",
        "inspect",
        "opt",
        "cache",
        "completion",
    ):
        assert command in printed


def test_version(capsys):
    """``--version`` prints the version and leaves."""
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("tilewright 0.1.0")


@pytest.mark.parametrize("arguments", [["nonsense"], ["targets", "--nonsense"], ["cache", "burn"]])
def test_wrong_arguments_exit_with_two(arguments, capsys):
    """A command or option that does not exist is named on standard error."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["compil", "model.onnx"], "did you mean 'compile'?"),
        (["compile", "model.onnx", "--targett", "llvm"], "did you mean --target?"),
        (["compile", "model.onnx", "--executor", "grpah"], "did you mean 'graph'?"),
        (["cache", "cleer"], "did you mean 'clear'?"),
        (["--verson"], "did you mean --version?"),
    ],
)
def test_wrong_words_are_answered_with_the_nearest(arguments, meant, capsys):
    """One message from the command that was meant, with the word that may have been."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    assert left.value.code == 2 and meant in captured.err and captured.out == ""
    assert len(captured.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["targets", "--kind", "lvm"], "did you mean 'llvm'?"),
        (["compile", "model.onnx", "--target", "lvm"], "did you mean 'llvm'?"),
        (["compile", "model.onnx", "--target", "nvidia/jetson-nan"], "did you mean 'nvidia/jetson-nano'?"),
        (["compile", "model.onnx", "--disabled-pass", "FoldConstnt"], "did you mean 'FoldConstant'?"),
        (["compile", "model.onnx", "--dump-code", "rely"], "did you mean 'relay'?"),
        (["opt", "model.onnx", "--passes", "fuseop"], "did you mean 'FuseOps'?"),
    ],
)
def test_wrong_values_are_answered_with_the_nearest(arguments, meant, capsys):
    """Targets, tags, passes and forms of code that do not exist."""
    assert main(arguments) == 2
    assert meant in capsys.readouterr().err


def test_verbose_shows_where_an_error_arises(capsys):
    """With ``-v`` the message comes with the way to it."""
    assert main(["-v", "run", "missing.tar"]) == 2
    assert "Traceback" in capsys.readouterr().err
    assert main(["run", "missing.tar"]) == 2
    assert capsys.readouterr().err == "tilewright: there is no package missing.tar\n"


def test_targets_lists_all_kinds(capsys):
    """The table has a line for each kind, and so has its JSON."""
    assert main(["targets"]) == 0
    table = capsys.readouterr().out
    assert main(["targets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kind"] for row in rows] == Target.list_kinds()
    assert all(kind in table for kind in Target.list_kinds())
    assert next(row for row in rows if row["kind"] == "cuda")["keys"] == ["cuda", "gpu"]
    assert "mcpu" in rows[0]["options"] and "--kind llvm" in table
    # What is said to be made is what there are code generators for.
    given = {row["kind"] for row in rows if row["gives"]}
    assert given == set(codegen.known_kinds()) and "a description only" in table


def test_targets_lists_options_of_a_kind(capsys):
    """Options are listed with their types; a misspelt kind is answered with the right one."""
    assert main(["targets", "--kind", "llvm", "--json"]) == 0
    assert {"option": "mattr", "type": "Array<String>"} in json.loads(capsys.readouterr().out)
    assert main(["targets", "--kind", "llvn"]) == 2
    assert "did you mean 'llvm'" in capsys.readouterr().err


def test_targets_lists_processors(capsys):
    """Known processors come with their vectors and caches."""
    assert main(["targets", "--cpus", "--json"]) == 0
    by_name = {(row["family"], row["mcpu"]): row for row in json.loads(capsys.readouterr().out)}
    assert by_name["x86", "skylake"]["vector_bits"] == 256
    assert by_name["x86", "sapphirerapids"]["l2_bytes"] == 2 << 20
    assert by_name["arm", "cortex-m4"]["vector_bits"] == 32
    assert main(["targets", "--cpus"]) == 0
    assert "neoverse-v1" in capsys.readouterr().out


def test_targets_lists_tags(capsys):
    """Each tag comes with the target that it stands for."""
    assert main(["targets", "--tags", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = next(row for row in rows if row["tag"] == "nvidia/geforce-rtx-3090")
    assert Target(found["target"]).attrs["arch"] == "sm_86"


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """A cache with one entry of ours and one of somebody else's."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    (tmp_path / "runtime" / "key").mkdir(parents=True)
    (tmp_path / "runtime" / "key" / "library.so").write_bytes(b"x" * 2048)
    (tmp_path / "precious.txt").write_text("not ours")
    return tmp_path


def test_cache_shows_what_is_kept(cache_folder, capsys):
    """Sizes are shown by entry."""
    assert main(["cache"]) == 0
    assert "runtime  2 KiB" in capsys.readouterr().out
    assert main(["cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": str(cache_folder),
        "bytes": {"runtime": 2048},
        "cleared": False,
    }
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(cache_folder)


def test_cache_clear_removes_only_our_entries(cache_folder, capsys):
    """Clearing takes away what Tilewright made and nothing else, and says how much."""
    assert main(["cache", "clear"]) == 0
    assert "cleared 2 KiB" in capsys.readouterr().out
    assert [path.name for path in cache_folder.iterdir()] == ["precious.txt"]
    assert main(["cache"]) == 0
    assert "is empty" in capsys.readouterr().out


def test_module_runs_as_a_program():
    """``python -m tilewright`` is the same command line, and a closed pipe is not an error message."""
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "targets", "--kind", "c"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "workspace-byte-alignment" in done.stdout
    program = subprocess.Popen(
        [sys.executable, "-m", "tilewright", "targets", "--tags"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    program.stdout.close()
    _, errors = program.communicate(timeout=60)
    assert b"Traceback" not in errors


@pytest.mark.parametrize("command", ["compile", "profile", "opt"])
@pytest.mark.parametrize("level", range(5))
def test_every_command_takes_every_level(command, level):
    """-O 0 to -O 4, wherever there is an -O."""
    assert make_parser().parse_args([command, "model.onnx", "-O", str(level)]).opt_level == level
