"""Worker processes for Python functions, with time limits: a job that hangs or crashes takes its worker down and
nothing else."""

from tilewright.contrib.popen_pool.pool import MapResult, PopenPoolExecutor, StatusKind
from tilewright.contrib.popen_pool.process import PopenWorker, kill_child_processes

__all__ = ["MapResult", "PopenPoolExecutor", "PopenWorker", "StatusKind", "kill_child_processes"]
