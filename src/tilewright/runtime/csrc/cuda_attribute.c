/* What a CUDA device is: its name, its limits and its memory. */
#include <stdio.h>
#include <string.h>

#include "cuda.h"

/* The version of the driver interface that cuda_driver.h declares. */
#define API_VERSION 12000

static int32_t number(int32_t device_id, TwCudaDevice* device, int of, TVMFFIAny* out) {
  int value = 0;
  CUresult result = tw_cu.DeviceGetAttribute(&value, of, device->device);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say what it is");
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = value};
  return 0;
}

static int32_t text(const char* value, TVMFFIAny* out) { return tilewright_make_string(value, strlen(value), out); }

/* Several numbers of the device in one text. */
static int32_t formatted(int32_t device_id, TwCudaDevice* device, const char* format, const int of[3], TVMFFIAny* out) {
  int values[3] = {0, 0, 0};
  char written[64];
  for (int i = 0; i < 3; ++i) {
    CUresult result = of[i] == 0 ? CUDA_SUCCESS : tw_cu.DeviceGetAttribute(&values[i], of[i], device->device);
    if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say what it is");
  }
  snprintf(written, sizeof written, format, values[0], values[1], values[2]);
  return text(written, out);
}

static int32_t name(int32_t device_id, TwCudaDevice* device, TVMFFIAny* out) {
  char written[256] = "";
  CUresult result = tw_cu.DeviceGetName(written, sizeof written, device->device);
  return result == CUDA_SUCCESS ? text(written, out) : tw_cuda_fail(device_id, result, "say its name");
}

static int32_t memory(int32_t device_id, bool is_free, TVMFFIAny* out) {
  size_t free_bytes = 0, total = 0;
  CUresult result = tw_cu.MemGetInfo(&free_bytes, &total);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say how much memory it has");
  /* Blocks that the pool keeps are as good as free to whoever allocates here. */
  TwCudaPool* pool = &tw_cuda_device(device_id)->pool;
  tw_mutex_lock(&pool->lock);
  free_bytes += pool->free_bytes;
  tw_mutex_unlock(&pool->lock);
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = (int64_t)(is_free ? free_bytes : total)};
  return 0;
}

static int32_t driver_version(int32_t device_id, TVMFFIAny* out) {
  int version = 0;
  CUresult result = tw_cu.DriverGetVersion(&version);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say the version of its driver");
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = version};
  return 0;
}

/* The driver's number for one of ours; 0 for what is not a single number of the driver. */
static int driver_attribute(int32_t attribute) {
  switch (attribute) {
    case TILEWRIGHT_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    case TILEWRIGHT_ATTRIBUTE_WARP_SIZE:
      return CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    case TILEWRIGHT_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
    case TILEWRIGHT_ATTRIBUTE_MAX_CLOCK_RATE:
      return CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    case TILEWRIGHT_ATTRIBUTE_MULTI_PROCESSOR_COUNT:
      return CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    case TILEWRIGHT_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
    case TILEWRIGHT_ATTRIBUTE_L2_BYTES:
      return CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    case TILEWRIGHT_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY:
      return CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    case TILEWRIGHT_ATTRIBUTE_SHARED_MEMORY_PER_MULTI_PROCESSOR:
      return CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    case TILEWRIGHT_ATTRIBUTE_REGISTERS_PER_MULTI_PROCESSOR:
      return CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    case TILEWRIGHT_ATTRIBUTE_THREADS_PER_MULTI_PROCESSOR:
      return CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    case TILEWRIGHT_ATTRIBUTE_BLOCKS_PER_MULTI_PROCESSOR:
      return CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
    case TILEWRIGHT_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
    case TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS:
      return CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
    default:
      return 0;
  }
}

int32_t tw_cuda_attribute(int32_t device_id, int32_t attribute, TVMFFIAny* out) {
  static const int version[3] = {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0};
  static const int dimensions[3] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  if (!tw_cuda_load(false)) return 0; /* nothing is known of devices that nobody can have here */
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  switch (attribute) {
    case TILEWRIGHT_ATTRIBUTE_DEVICE_NAME:
      return name(device_id, device, out);
    case TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION:
      return formatted(device_id, device, "%d.%d", version, out);
    case TILEWRIGHT_ATTRIBUTE_MAX_THREAD_DIMENSIONS:
      return formatted(device_id, device, "[%d, %d, %d]", dimensions, out);
    case TILEWRIGHT_ATTRIBUTE_API_VERSION:
      *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = API_VERSION};
      return 0;
    case TILEWRIGHT_ATTRIBUTE_DRIVER_VERSION:
      return driver_version(device_id, out);
    case TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY:
      return memory(device_id, false, out);
    case TILEWRIGHT_ATTRIBUTE_FREE_MEMORY:
      return memory(device_id, true, out);
    default:
      break;
  }
  int of = driver_attribute(attribute);
  return of == 0 ? 0 : number(device_id, device, of, out);
}
