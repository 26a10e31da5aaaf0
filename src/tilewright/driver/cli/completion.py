"""``tilewright completion``: a shell completion script for commands and options, generated from the parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option: its names, the words that it takes (None: it takes none; empty: any), and what it is for."""

    names: tuple[str, ...]
    choices: tuple[str, ...] | None
    help: str


@dataclass(frozen=True)
class Command:
    """A command: what it is for, its options, and the words that can stand without a dash."""

    help: str
    options: list[Option]
    words: tuple[str, ...]


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command; it describes all that were added before it."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        epilog='For bash, in ~/.bashrc: eval "$(tilewright completion bash)"',
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=lambda arguments: run(arguments, commands))


def run(arguments: argparse.Namespace, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> int:
    """Print the script."""
    print(_WRITERS[arguments.shell](describe(commands)), end="")
    return 0


def describe(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> dict[str, Command]:
    """Every command, from the parser."""
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    return {name: _command(helps.get(name, ""), parser) for name, parser in commands.choices.items()}


def _command(help: str, parser: argparse.ArgumentParser) -> Command:
    options: list[Option] = []
    words: tuple[str, ...] = ()
    for action in parser._actions:
        if not action.option_strings:
            words += tuple(str(word) for word in action.choices or ())
            continue
        takes = None if action.nargs == 0 else tuple(str(word) for word in action.choices or ())
        shown = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        options.append(Option(tuple(action.option_strings), takes, shown))
    return Command(help, options, words)


def _names(command: Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def bash(commands: Mapping[str, Command]) -> str:
    """A function for ``complete -F``."""
    values, words = [], []
    for name, command in commands.items():
        for option in command.options:
            if option.choices:
                pattern = "|".join(f"{name}:{one}" for one in option.names)
                values.append(f'    {pattern}) words="{" ".join(option.choices)}" ;;')
        listed = " ".join([*_names(command), *command.words])
        words.append(f'    {name}) words="{listed}" ;;')
    takes = sorted(
        f"{name}:{one}"
        for name, command in commands.items()
        for option in command.options
        if option.choices == ()
        for one in option.names
    )
    return (
        '# bash completion of tilewright: eval "$(tilewright completion bash)"\n'
        "_tilewright() {\n"
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words="" command=""\n'
        "  COMPREPLY=()\n"
        '  [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"\n'
        '  if [ -z "$command" ]; then\n'
        f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$current"))\n'
        "    return\n"
        "  fi\n"
        '  case "$command:$previous" in\n' + "\n".join(values) + "\n"
        f'    {"|".join(takes)}) COMPREPLY=($(compgen -f -- "$current")); return ;;\n'
        "  esac\n"
        '  if [ -z "$words" ]; then\n'
        '    case "$command" in\n' + "\n".join(f"  {line}" for line in words) + "\n"
        "    esac\n"
        '    [ "${current#-}" = "$current" ] && COMPREPLY=($(compgen -f -- "$current"))\n'
        "  fi\n"
        '  COMPREPLY+=($(compgen -W "$words" -- "$current"))\n'
        "}\n"
        "complete -o filenames -F _tilewright tilewright\n"
    )


def _quoted(text: str) -> str:
    """Text for a zsh or fish description in single quotes."""
    plain = text.replace("\\", "").replace("'", "").replace("[", "(").replace("]", ")").replace(":", " -")
    return plain.replace("%%", "%")


def zsh(commands: Mapping[str, Command]) -> str:
    """A function for ``compdef``."""
    lines = ["#compdef tilewright", '# zsh completion of tilewright: eval "$(tilewright completion zsh)"']
    lines += ["_tilewright() {", "  local -a commands", "  commands=("]
    lines += [f"    '{name}:{_quoted(command.help)}'" for name, command in commands.items()]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe command commands", "    return", "  fi"]
    lines += ["  local command=$words[2]", "  shift words", "  (( CURRENT-- ))", "  case $command in"]
    for name, command in commands.items():
        lines.append(f"    {name}) _arguments \\")
        for option in command.options:
            for one in option.names:
                takes = ""
                if option.choices is not None:
                    takes = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
                lines.append(f"      '{one}[{_quoted(option.help)}]{takes}' \\")
        rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        lines.append(f"      {rest} ;;")
    lines += ["  esac", "}", "compdef _tilewright tilewright"]
    return "\n".join(lines) + "\n"


def fish(commands: Mapping[str, Command]) -> str:
    """A ``complete`` line for every command and option."""
    known = " ".join(commands)
    lines = ["# fish completion of tilewright: tilewright completion fish | source"]
    for name, command in commands.items():
        lines.append(
            f"complete -c tilewright -f -n 'not __fish_seen_subcommand_from {known}' -a {name} "
            f"-d '{_quoted(command.help)}'"
        )
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for option in command.options:
            names = " ".join(
                f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in option.names
            )
            takes = ""
            if option.choices is not None:
                takes = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r"
            lines.append(f"complete -c tilewright {seen} {names}{takes} -d '{_quoted(option.help)}'")
        if command.words:
            lines.append(f"complete -c tilewright -f {seen} -a '{' '.join(command.words)}'")
    return "\n".join(lines) + "\n"


_WRITERS: dict[str, Callable[[Mapping[str, Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
