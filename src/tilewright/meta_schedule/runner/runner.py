"""The interface of runners: a candidate that was built goes in, a promise of its running times comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.utils import require_overridden
from tilewright.support.node import Object


class RunnerInput(Object):
    """A candidate to run: the file that was built, the type of the device, and what the arguments are."""

    def __init__(self, artifact_path: str, device_type: str, args_info: Sequence[ArgInfo]) -> None:
        self.artifact_path = artifact_path
        self.device_type = device_type
        self.args_info = list(args_info)


class RunnerResult(Object):
    """The seconds that each measurement took, or why there are none."""

    def __init__(self, run_secs: Sequence[float] | None, error_msg: str | None) -> None:
        self.run_secs = None if run_secs is None else [float(one) for one in run_secs]
        self.error_msg = error_msg


class RunnerFuture(Object):
    """A result that may still be on its way. Given two functions, it asks them; a subclass may define the methods."""

    def __init__(
        self, f_done: Callable[[], bool] | None = None, f_result: Callable[[], RunnerResult] | None = None
    ) -> None:
        if f_done is None or f_result is None:
            require_overridden(self, RunnerFuture, ["done", "result"])
        self._done = f_done
        self._result = f_result

    def done(self) -> bool:
        """True once the result is there."""
        assert self._done is not None
        return self._done()

    def result(self) -> RunnerResult:
        """The result; waits for it."""
        assert self._result is not None
        return self._result()


def known_future(result: RunnerResult) -> RunnerFuture:
    """A future whose result is there."""
    return RunnerFuture(lambda: True, lambda: result)


class Runner(Object):
    """What runs candidates."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Run every input; a future for each."""
        raise NotImplementedError(f"{type(self).__name__} has no method run")


class PyRunner(Runner):
    """The base of runners that programs write."""

    def __init__(self) -> None:
        require_overridden(self, Runner, ["run"])
