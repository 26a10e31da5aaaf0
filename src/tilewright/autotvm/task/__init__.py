"""Tasks, their spaces, and the contexts that choose configurations."""

from tilewright.autotvm.task import dispatcher, space, task
from tilewright.autotvm.task.constructed import template as _templates  # registers the tasks of operators
from tilewright.autotvm.task.dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    clear_fallback_cache,
)
from tilewright.autotvm.task.relay_integration import extract_from_multiple_program, extract_from_program
from tilewright.autotvm.task.space import (
    AnnotateEntity,
    AnnotateSpace,
    ConfigEntity,
    ConfigSpace,
    FallbackConfigEntity,
    OtherOptionEntity,
    OtherOptionSpace,
    ReorderEntity,
    ReorderSpace,
    SplitEntity,
    SplitSpace,
)
from tilewright.autotvm.task.task import (
    TASK_TABLE,
    Task,
    args_to_workload,
    compute_flop,
    create,
    deserialize_args,
    get_config,
    serialize_args,
    template,
)
from tilewright.autotvm.task.topi_integration import (
    TaskExtractEnv,
    get_workload,
    register_topi_compute,
    register_topi_schedule,
)
