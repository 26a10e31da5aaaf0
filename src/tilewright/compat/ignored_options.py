"""Options of TVM 0.8 that are accepted, so that scripts and stored targets can be read, but have no effect here.

They are checked like all options (an unknown name or a value of another type is an error) and change nothing. An option
that a pass or code generator starts to use moves there.
"""

from __future__ import annotations

from typing import Any, Final

PASS_OPTIONS: Final[dict[str, tuple[type, Any]]] = {
    # Tuned schedules are found by workload and target, with or without this.
    "relay.backend.use_meta_schedule": (bool, False),
}
"""Keys of ``PassContext(config={...})``, with the type and the default of their values."""

_VULKAN_CAN: Final = (
    "supports_float16 supports_float32 supports_float64 supports_int8 supports_int16 supports_int32 supports_int64 "
    "supports_8bit_buffer supports_16bit_buffer supports_storage_buffer_storage_class supports_push_descriptor "
    "supports_dedicated_allocation"
)
_VULKAN_HAS: Final = (
    "supported_subgroup_operations max_block_size_x max_block_size_y max_block_size_z max_push_constants_size "
    "max_uniform_buffer_range max_storage_buffer_range max_per_stage_descriptor_storage_buffer "
    "driver_version vulkan_api_version max_spirv_version from_device"
)

TARGET_OPTIONS: Final[dict[str, dict[str, str]]] = {
    # The runtime is the C runtime; the triple decides the float ABI; buffers are aligned as the runtime aligns its own.
    "llvm": {"String": "runtime mfloat-abi", "Integer": "workspace-byte-alignment"},
    "c": {"String": "runtime march", "Integer": "workspace-byte-alignment"},
    "hexagon": {"Array<String>": "llvm-options"},
    # A description of the device: there is no code generator for it.
    "vulkan": {"Bool": _VULKAN_CAN, "Integer": _VULKAN_HAS, "String": "device_type device_name driver_name"},
}
"""Options of target kinds, by the type of their values."""


def add_pass_options(pass_config: Any) -> None:
    """Make the keys known to the module ``ir.pass_config``."""
    for key, (value_type, default) in PASS_OPTIONS.items():
        pass_config.register_config(key, value_type, default)


def add_target_options(kinds: Any) -> None:
    """Make the options known to the kinds of the module ``target.kind``."""
    for name, by_type in TARGET_OPTIONS.items():
        for value_type, options in by_type.items():
            kinds.KINDS[name].own_options.update(dict.fromkeys(options.split(), value_type))
