"""``tilewright tune``: search for faster schedules for the kernels of a model."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from tilewright import __version__
from tilewright.driver import tuning, tvmc
from tilewright.driver.cli.output import check_output, show_json, show_table, show_text
from tilewright.driver.cli.progress import progress
from tilewright.driver.cli.tune_table import COLUMNS, LiveTable, ranked, rows_of, time_text
from tilewright.driver.tvmc.arguments import (
    UNWRITTEN_MODEL,
    Commands,
    add_model_arguments,
    add_pass_arguments,
    add_target_arguments,
)
from tilewright.driver.tvmc.measurable import require_processor
from tilewright.support.errors import ModelError

if TYPE_CHECKING:
    from tilewright.driver.tuning.model import ModelTuning

DEFAULT_TIME = "5m"
_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "tune",
        help="search for faster schedules for a model",
        usage="%(prog)s [OPTIONS] FILE",
        epilog="For example: tilewright tune model.onnx --time 5m -o records.json, and then "
        "tilewright compile model.onnx --tuning-records records.json. Running it again goes on where it was.",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        default="records.json",
        metavar="PATH",
        help="where everything measured is appended; default: records.json",
    )
    parser.add_argument(
        "--time", metavar="TIME", help=f"how long, as in 90s, 5m or 1h30m; default: {DEFAULT_TIME}"
    )
    parser.add_argument("--trials", type=int, metavar="N", help="how many candidates to measure at most")
    parser.add_argument(
        "--tuner",
        choices=("choices", "auto_scheduler", "both"),
        default="choices",
        help="what is searched: the choices of the constructed schedules (the default, which gains most in minutes), "
        "AutoScheduler's schedules, or one after the other",
    )
    parser.add_argument("--report", metavar="PATH", help="write a report for the browser: one .html file")
    parser.add_argument(
        "--executor",
        choices=("graph", "vm", "aot"),
        help="what the model will be compiled for; default: graph where the model allows it, else vm",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--fill-shapes",
        metavar="SHAPES",
        help='shapes of inputs whose sizes the model leaves open, as in "tokens:[1,128]"',
    )
    add_target_arguments(parser)
    add_pass_arguments(parser)
    parser.set_defaults(run=run, **UNWRITTEN_MODEL)


def seconds_of(text: str) -> float:
    """The seconds of a time such as 90, 90s, 5m or 1h30m."""
    found = _TIME.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise ModelError(f"--time takes a time such as 90s, 5m or 1h30m, not {text!r}")
    hours, minutes, seconds = (float(one or 0) for one in found.groups())
    total = 3600 * hours + 60 * minutes + seconds
    if total <= 0:
        raise ModelError("--time takes a time longer than nothing")
    return total


def run(arguments: argparse.Namespace) -> int:
    """Search, compare, and say what came of it."""
    if arguments.trials is not None and arguments.trials < 1:
        raise ModelError(f"--trials takes a number of at least 1, not {arguments.trials}")
    limit = arguments.time or (None if arguments.trials else DEFAULT_TIME)
    seconds = float("inf") if limit is None else seconds_of(limit)
    check_output(arguments.output, "-o", [arguments.FILE])
    if arguments.report:
        check_output(arguments.report, "--report", [arguments.FILE, arguments.output])
    tuning.records.require_records(arguments.output, "-o")
    compiler = tvmc.compiler
    settings = compiler.settings_from_arguments(arguments)
    require_processor(settings.target)
    with progress(f"reading {arguments.FILE}", arguments.json):
        model = compiler.load_from_arguments(arguments)
    options = tuning.model.TuneOptions(seconds=seconds, trials=arguments.trials, version=__version__)
    with LiveTable(arguments.json) as shown:
        result = tuning.model.tune_model(
            model,
            settings.for_model(model.mod),
            arguments.FILE,
            arguments.output,
            options,
            shown,
            tvmc.runner.fill_shapes_from_arguments(arguments),
            arguments.tuner,
        )
    if arguments.report:
        tuning.report.write_report(result, arguments.report)
    if arguments.json:
        show_json(tuning.report.as_json(result))
    else:
        show(result)
    return 0


def show(result: ModelTuning) -> None:
    """Print the table of tasks, what was measured, and the result in one line."""
    tasks: list[Any] = ranked(result.tasks)
    if tasks:
        show_table(f"tasks of {result.model}", COLUMNS, rows_of(tasks))
    for task in tasks:
        if tuning.model.has_failed(task):
            show_text(f"{task.name}: every candidate failed; the first error: {task.first_error}")
    resumed = f", {result.resumed} from earlier runs" if result.resumed else ""
    show_text(
        f"{result.trials} candidates in {result.seconds:.0f} s{resumed}; {result.failures} failed. "
        f"Records: {result.records}"
    )
    if result.comparison is not None:
        both = result.comparison
        show_text(
            f"One run of the model: {time_text(both.tuned)} tuned, {time_text(both.untuned)} untuned "
            f"({both.runs} runs each, taking turns)."
        )
    show_text(result.last_line(), bold=True)
