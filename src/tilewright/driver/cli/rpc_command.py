"""``tilewright rpc``: keys of remote machines, and the server for small ones."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilewright.driver.tvmc.arguments import Commands
from tilewright.rpc.keys import generate_key, write_key
from tilewright.support.cbuild import build_rpc_server
from tilewright.target.cpu import describe_cpu
from tilewright.target.target import Target


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "rpc",
        help="make keys and servers for running on other machines",
        epilog="For example: tilewright rpc keygen ~/.tilewright-key",
    )
    below = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    keygen = below.add_parser("keygen", help="make a new key", usage="%(prog)s [FILE]")
    keygen.add_argument(
        "FILE", nargs="?", help="a new file, which only you can read; without one, the key is printed"
    )
    keygen.set_defaults(run=keygen_command)
    binary = below.add_parser(
        "server-binary",
        help="build the server for a machine without Python",
        usage="%(prog)s [--target TARGET] -o FILE",
        epilog="For example: tilewright rpc server-binary --target raspberry-pi/4b-aarch64 -o tw-rpc-server",
    )
    binary.add_argument(
        "--target",
        default="llvm",
        help="the machine: a target, a tag or a triple such as aarch64-linux; this one by default",
    )
    binary.add_argument("-o", "--output", required=True, metavar="FILE", help="the program to write")
    binary.set_defaults(run=server_binary_command)


def keygen_command(arguments: argparse.Namespace) -> int:
    """Write a new key, or print it."""
    if arguments.FILE is None:
        print(generate_key())
        return 0
    write_key(arguments.FILE)
    print(
        f"key written to {arguments.FILE}: copy it to each machine, and name it there in TILEWRIGHT_RPC_KEY_FILE"
    )
    return 0


def server_binary_command(arguments: argparse.Namespace) -> int:
    """Build the static server program for a machine."""
    triple = _triple_of(arguments.target)
    output = Path(arguments.output)
    build_rpc_server(output, triple)
    print(
        f"{output}: {output.stat().st_size / 1024:.0f} KB for {triple}; copy it there with a key, and start it with "
        "--host ADDRESS --key-file FILE"
    )
    return 0


def _triple_of(written: str) -> str:
    """The triple of a target, or of a triple itself, which starts with a machine and a dash."""
    word = written.strip()
    if " " not in word and "/" not in word and "-" in word and not word.startswith("-"):
        return word
    return describe_cpu(Target(word)).triple
