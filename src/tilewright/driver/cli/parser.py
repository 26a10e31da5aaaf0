"""The argument parser of the command line: one message for a wrong argument, with what may have been meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tilewright.driver.cli.output import printable
from tilewright.support.suggestions import closest, did_you_mean

USAGE_ERROR = 2


class Parser(argparse.ArgumentParser):
    """Proposes the nearest command, option or value for one that it does not know.

    A command that sets ``takes_any_argument`` gets whatever stands behind it.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever, but what is left over is an error of the command that it was given to."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest and not getattr(parsed, "takes_any_argument", False):
            self.error(self._about_unknown(rest))
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Leave with the message, and with where to read more."""
        print(f"{self.prog}: {printable(message)}", file=sys.stderr)
        print(f"'{self.prog} --help' lists the options", file=sys.stderr)
        sys.exit(USAGE_ERROR)

    def _about_unknown(self, rest: Sequence[str]) -> str:
        options = [one for one in rest if one.startswith("-") and one != "-"]
        if not options:
            return f"one argument too many: {' '.join(rest)}"
        name = options[0].partition("=")[0]
        known = [
            option
            for action in self._actions
            for option in action.option_strings
            if option.startswith("--") and action.help != argparse.SUPPRESS
        ]
        return f"there is no option {name}{_meant(name, known)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As the class above, in other words."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(one) for one in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no command {str(value)!r}{did_you_mean(str(value), choices)}")
        listed = ", ".join(choices)
        hint = did_you_mean(str(value), choices)
        raise argparse.ArgumentError(action, f"{str(value)!r} is not one of {listed}{hint}")


def _meant(name: str, known: Sequence[str]) -> str:
    found = closest(name, known)
    return "" if found is None else f": did you mean {found}?"
