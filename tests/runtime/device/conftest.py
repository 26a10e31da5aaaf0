"""What the tests of devices share: the guarded devices, which must get everything back, and kernels for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.runtime.device.guarded import Code, balanced, build_image, guarded

from tilewright.runtime import Device

KERNELS = """
void add_one(void** args, const int32_t* grid, const int32_t* block, void* shared) {
  const float* from = *(float**)args[0];
  float* to = *(float**)args[1];
  int64_t count = *(int64_t*)args[2];
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] + 1.0f;
}
void fill(void** args, const int32_t* grid, const int32_t* block, void* shared) {
  int32_t* to = *(int32_t**)args[0];
  for (int i = 0; i < grid[0] * block[0]; ++i) to[i] = (int32_t)*(int64_t*)args[1] + i;
}
void use_shared(void** args, const int32_t* grid, const int32_t* block, void* shared) {
  int32_t* scratch = shared;
  for (int i = 0; i < block[0]; ++i) scratch[i] = i;
  for (int i = 0; i < block[0]; ++i) (*(int32_t**)args[0])[i] = scratch[block[0] - 1 - i];
}
"""


@pytest.fixture
def device() -> Iterator[Device]:
    """A guarded device; whatever the test takes of either, it must give back."""
    with balanced() as made:
        yield made


@pytest.fixture(scope="session")
def image() -> bytes:
    """The kernels, compiled."""
    guarded()
    return build_image(KERNELS)


@pytest.fixture
def code(image: bytes, device: Device) -> Iterator[Code]:
    """The kernels, loaded on the device."""
    loaded = Code(image, device)
    yield loaded
    loaded.close()
