"""``tilewright rpc``: keys of remote machines."""

from __future__ import annotations

import argparse

from tilewright.driver.tvmc.arguments import Commands
from tilewright.rpc.keys import generate_key, write_key


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "rpc",
        help="make keys for running on other machines",
        epilog="For example: tilewright rpc keygen ~/.tilewright-key",
    )
    below = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    keygen = below.add_parser("keygen", help="make a new key", usage="%(prog)s [FILE]")
    keygen.add_argument(
        "FILE", nargs="?", help="a new file, which only you can read; without one, the key is printed"
    )
    keygen.set_defaults(run=keygen_command)


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
