/* What a CUDA device is: its name, its limits and its memory. */
#include <stdio.h>
#include <string.h>

#include "cuda.h"

/* The version of the driver interface that cuda_driver.h declares. */
#define API_VERSION 12000

/* What is asked of the driver once, when it is loaded: it needs no context, and a process that was forked from one that had
 * loaded it, as one that compiles may be, can still be told. */
static const int driver_attributes[] = {
    [TILEWRIGHT_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    [TILEWRIGHT_ATTRIBUTE_WARP_SIZE] = CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    [TILEWRIGHT_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    [TILEWRIGHT_ATTRIBUTE_MAX_CLOCK_RATE] = CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
    [TILEWRIGHT_ATTRIBUTE_MULTI_PROCESSOR_COUNT] = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    [TILEWRIGHT_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
    [TILEWRIGHT_ATTRIBUTE_L2_BYTES] = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
    [TILEWRIGHT_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    [TILEWRIGHT_ATTRIBUTE_SHARED_MEMORY_PER_MULTI_PROCESSOR] = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    [TILEWRIGHT_ATTRIBUTE_REGISTERS_PER_MULTI_PROCESSOR] = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
    [TILEWRIGHT_ATTRIBUTE_THREADS_PER_MULTI_PROCESSOR] = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
    [TILEWRIGHT_ATTRIBUTE_BLOCKS_PER_MULTI_PROCESSOR] = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
    [TILEWRIGHT_ATTRIBUTE_MEMORY_CLOCK_RATE] = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
    [TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS] = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
};

/* A number of a device; -1 where the driver does not know it. */
static int number_of(CUdevice device, int attribute) {
  int value = -1;
  return tw_cu.DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : -1;
}

CUresult tw_cuda_learn(TwCudaDevice* device, int32_t device_id) {
  CUresult result = tw_cu.DeviceGet(&device->device, device_id);
  if (result == CUDA_SUCCESS) result = tw_cu.DeviceGetName(device->name, sizeof device->name, device->device);
  if (result == CUDA_SUCCESS) result = tw_cu.DeviceTotalMem(&device->total_bytes, device->device);
  if (result == CUDA_SUCCESS) result = tw_cu.DriverGetVersion(&device->driver_version);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < sizeof driver_attributes / sizeof *driver_attributes; ++i) {
    device->numbers[i] = driver_attributes[i] != 0 ? number_of(device->device, driver_attributes[i]) : -1;
  }
  snprintf(device->version, sizeof device->version, "%d.%d", number_of(device->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
           number_of(device->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  snprintf(device->dimensions, sizeof device->dimensions, "[%d, %d, %d]", number_of(device->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
           number_of(device->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), number_of(device->device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
  return CUDA_SUCCESS;
}

static int32_t text(const char* value, TVMFFIAny* out) { return tilewright_make_string(value, strlen(value), out); }

static int32_t number(int64_t value, TVMFFIAny* out) {
  if (value >= 0) *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = value};
  return 0;
}

static int32_t free_memory(int32_t device_id, TVMFFIAny* out) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  size_t free_bytes = 0, total = 0;
  CUresult result = tw_cu.MemGetInfo(&free_bytes, &total);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say how much memory is free");
  /* Blocks that the pool keeps are as good as free to whoever allocates here. */
  TwCudaPool* pool = &tw_cuda_device(device_id)->pool;
  tw_mutex_lock(&pool->lock);
  free_bytes += pool->free_bytes;
  tw_mutex_unlock(&pool->lock);
  return number((int64_t)free_bytes, out);
}

int32_t tw_cuda_attribute(int32_t device_id, int32_t attribute, TVMFFIAny* out) {
  if (!tw_cuda_load(false)) return 0; /* nothing is known of devices that nobody can have here */
  const TwCudaDevice* device = tw_cuda_find(device_id);
  if (device == NULL) return -1;
  switch (attribute) {
    case TILEWRIGHT_ATTRIBUTE_DEVICE_NAME:
      return text(device->name, out);
    case TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION:
      return text(device->version, out);
    case TILEWRIGHT_ATTRIBUTE_MAX_THREAD_DIMENSIONS:
      return text(device->dimensions, out);
    case TILEWRIGHT_ATTRIBUTE_API_VERSION:
      return number(API_VERSION, out);
    case TILEWRIGHT_ATTRIBUTE_DRIVER_VERSION:
      return number(device->driver_version, out);
    case TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY:
      return number((int64_t)device->total_bytes, out);
    case TILEWRIGHT_ATTRIBUTE_FREE_MEMORY:
      return free_memory(device_id, out);
    default:
      break;
  }
  bool is_known = attribute >= 0 && attribute < (int32_t)(sizeof driver_attributes / sizeof *driver_attributes);
  return is_known ? number(device->numbers[attribute], out) : 0;
}
