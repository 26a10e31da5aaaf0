"""``tilewright completion``: a shell completion script for commands, options and their values, generated from the
parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.driver.cli.completion_values import values_of

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Option:
    """An option: its names, the words that it takes (None: it takes none; empty: any), what it is for, and whether it
    takes several words, separated by commas."""

    names: tuple[str, ...]
    choices: tuple[str, ...] | None
    help: str
    is_list: bool = False


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
        epilog="For bash: tilewright completion bash > ~/.local/share/bash-completion/completions/tilewright. "
        "For fish: tilewright completion fish > ~/.config/fish/completions/tilewright.fish. "
        "For zsh: write the output to a file _tilewright in a folder of $fpath.",
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
        shown = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        takes = None if action.nargs == 0 else tuple(str(word) for word in action.choices or ())
        values = values_of(action.option_strings[-1]) if takes == () else None
        words_taken = takes if values is None else values.words
        is_list = values is not None and values.is_list
        options.append(Option(tuple(action.option_strings), words_taken, shown, is_list))
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
                several = " several=1" if option.is_list else ""
                values.append(f'    {pattern}) words="{" ".join(option.choices)}"{several} ;;')
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
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"\n'
        '  local words="" command="" several="" before="" IFS=$\' \\t\\n\'\n'
        "  COMPREPLY=()\n"
        # bash makes three words of --option=value.
        '  if [ "$current" = "=" ]; then current=""; '
        'elif [ "$previous" = "=" ]; then previous="${COMP_WORDS[COMP_CWORD-2]}"; fi\n'
        '  [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"\n'
        '  if [ -z "$command" ]; then\n'
        f'    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$current"))\n'
        "    return\n"
        "  fi\n"
        '  case "$command:$previous" in\n' + "\n".join(values) + "\n"
        f"    {'|'.join(takes)}) compopt -o filenames 2>/dev/null; "
        "IFS=$'\\n'; "
        'COMPREPLY=($(compgen -f -- "$current")); return ;;\n'
        "  esac\n"
        '  if [ -z "$words" ]; then\n'
        '    case "$command" in\n' + "\n".join(f"  {line}" for line in words) + "\n"
        "    esac\n"
        '    if [ "${current#-}" = "$current" ]; then\n'
        "      compopt -o filenames 2>/dev/null\n"
        "      IFS=$'\\n'\n"
        '      COMPREPLY=($(compgen -f -- "$current"))\n'
        "      IFS=$' \\t\\n'\n"
        "    fi\n"
        "  fi\n"
        # Of a list, the last word is completed; what stands before it stays.
        '  if [ -n "$several" ] && [ "${current%,*}" != "$current" ]; then\n'
        '    before="${current%,*},"\n'
        "  fi\n"
        '  COMPREPLY+=($(compgen -P "$before" -W "$words" -- "${current##*,}"))\n'
        "  # A value with an equals sign goes on.\n"
        '  local first="${COMPREPLY[0]}"\n'
        '  [ "${#COMPREPLY[@]}" = 1 ] && [ "${first%=}" != "$first" ] && compopt -o nospace 2>/dev/null\n'
        "  return 0\n"
        "}\n"
        "complete -F _tilewright tilewright\n"
    )


def _quoted(text: str) -> str:
    """Text for a zsh or fish description in single quotes."""
    plain = text.replace("\\", "").replace("'", "").replace("[", "(").replace("]", ")").replace(":", " -")
    return plain.replace("%%", "%")


def _zsh_values(option: Option) -> str:
    """What zsh completes for an option's value."""
    listed = " ".join(option.choices or ())
    if not listed:
        return "_files"
    return f"_sequence compadd - {listed}" if option.is_list else f"({listed})"


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
                    takes = f":value:{_zsh_values(option)}"
                lines.append(f"      '{one}[{_quoted(option.help)}]{takes}' \\")
        rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        lines.append(f"      {rest} ;;")
    lines += ["  esac", "}", "compdef _tilewright tilewright"]
    return "\n".join(lines) + "\n"


def _fish_values(option: Option) -> str:
    """What fish completes for an option's value."""
    listed = " ".join(option.choices or ())
    return f"(__fish_append , {listed})" if option.is_list else listed


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
                takes = f" -x -a '{_fish_values(option)}'" if option.choices else " -r"
            lines.append(f"complete -c tilewright {seen} {names}{takes} -d '{_quoted(option.help)}'")
        if command.words:
            lines.append(f"complete -c tilewright -f {seen} -a '{' '.join(command.words)}'")
    return "\n".join(lines) + "\n"


_WRITERS: dict[str, Callable[[Mapping[str, Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
