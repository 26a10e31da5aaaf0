/* A CUDA driver without a GPU, for tests: the functions that the runtime takes from libcuda.so.1, over host memory that
 * nobody but its kernels and copies may touch. TILEWRIGHT_CUDA_DRIVER names the library that these files are built into.
 *
 * Kernels are those of mock_cuda_kernels.c, in every module whose PTX has an entry of their name. Any call of any function
 * can be made to fail. */
#include "mock_cuda.h"

#include <stdio.h>

#define NUM_DEVICES 2

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;
int64_t mock_counts[NUM_COUNTS];

static struct CUctx_st contexts[NUM_DEVICES] = {{0}, {1}};
static _Thread_local CUcontext current;
static int device_count = NUM_DEVICES;

/* ---- failures on demand ---- */
static char failing[80];
static int calls_left;
static CUresult failure;

EXPORTED void mock_cuda_fail(const char* function, int after, CUresult result);
EXPORTED bool mock_cuda_is_pending(void);
EXPORTED int64_t mock_cuda_count(int what);
EXPORTED void mock_cuda_recover(void);
EXPORTED void mock_cuda_forget_context(void);

/* Has the call of a function fail that comes after so many others of it; no function: none. */
void mock_cuda_fail(const char* function, int after, CUresult result) {
  pthread_mutex_lock(&mock_lock);
  snprintf(failing, sizeof failing, "%s", function);
  calls_left = after;
  failure = result;
  pthread_mutex_unlock(&mock_lock);
}

/* True if the call that was to fail has not come yet. */
bool mock_cuda_is_pending(void) {
  pthread_mutex_lock(&mock_lock);
  bool pending = failing[0] != 0;
  pthread_mutex_unlock(&mock_lock);
  return pending;
}

/* The lock is not held. */
bool mock_injected(const char* function, CUresult* result) {
  pthread_mutex_lock(&mock_lock);
  bool fails = strcmp(function, failing) == 0 && calls_left-- == 0;
  if (fails) failing[0] = 0;
  *result = failure;
  pthread_mutex_unlock(&mock_lock);
  return fails;
}

int64_t mock_cuda_count(int what) {
  pthread_mutex_lock(&mock_lock);
  int64_t count = mock_counts[what];
  pthread_mutex_unlock(&mock_lock);
  return count;
}

/* A lost device is as new: tests go on in the same process. */
void mock_cuda_recover(void) {
  pthread_mutex_lock(&mock_lock);
  mock_lost = CUDA_SUCCESS;
  pthread_mutex_unlock(&mock_lock);
}

/* What another library may do to a thread. */
void mock_cuda_forget_context(void) { current = NULL; }

int mock_current_device(void) { return current != NULL ? current->device : -1; }

/* Every function begins with this: the failure that was asked for, a context, and a device that is well. */
#define BEGIN(needs_context)                                          \
  CUresult begun;                                                     \
  if (mock_injected(__func__, &begun)) return begun;                  \
  if ((needs_context) && current == NULL) return 201;                 \
  pthread_mutex_lock(&mock_lock);                                     \
  begun = (needs_context) ? mock_lost : CUDA_SUCCESS;                 \
  if (begun != CUDA_SUCCESS) {                                        \
    pthread_mutex_unlock(&mock_lock);                                 \
    return begun;                                                     \
  }

/* The same for functions that end something: they do that also when they are made to fail. */
#define BEGIN_ENDING                                          \
  CUresult begun = CUDA_SUCCESS;                              \
  if (!mock_injected(__func__, &begun)) begun = CUDA_SUCCESS; \
  if (current == NULL) return 201;                            \
  pthread_mutex_lock(&mock_lock);

static CUresult end(CUresult result) {
  pthread_mutex_unlock(&mock_lock);
  return result;
}

/* Declares a function and begins its definition. */
#define FUNCTION(name, ...)           \
  EXPORTED CUresult name(__VA_ARGS__); \
  CUresult name(__VA_ARGS__)

/* ---- the driver and its devices ---- */
FUNCTION(cuInit, unsigned int flags) {
  BEGIN(false)
  return end(flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

FUNCTION(cuDriverGetVersion, int* version) {
  BEGIN(false)
  *version = 12090;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuGetErrorName, CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS  ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_INVALID_VALUE    ? "CUDA_ERROR_INVALID_VALUE"
          : error == CUDA_ERROR_INVALID_PTX      ? "CUDA_ERROR_INVALID_PTX"
          : error == CUDA_ERROR_NO_DEVICE        ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                                 : NULL;
  return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FUNCTION(cuGetErrorString, CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY     ? "out of memory"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
          : error == CUDA_ERROR_INVALID_VALUE   ? "invalid argument"
                                                : NULL;
  return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FUNCTION(cuDeviceGetCount, int* count) {
  BEGIN(false)
  *count = device_count;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuDeviceGet, CUdevice* device, int ordinal) {
  BEGIN(false)
  *device = ordinal;
  return end(ordinal >= 0 && ordinal < NUM_DEVICES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

FUNCTION(cuDeviceGetName, char* name, int length, CUdevice device) {
  BEGIN(false)
  snprintf(name, (size_t)length, "Mock GPU %d", device);
  return end(CUDA_SUCCESS);
}

FUNCTION(cuDeviceGetAttribute, int* value, int attribute, CUdevice device) {
  static const int numbers[][2] = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
  };
  (void)device;
  BEGIN(false)
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (numbers[i][0] != attribute) continue;
    *value = numbers[i][1];
    return end(CUDA_SUCCESS);
  }
  return end(CUDA_ERROR_INVALID_VALUE);
}

FUNCTION(cuDeviceTotalMem_v2, size_t* bytes, CUdevice device) {
  BEGIN(false)
  size_t unused;
  mock_memory_info(device, &unused, bytes);
  return end(CUDA_SUCCESS);
}

FUNCTION(cuDeviceCanAccessPeer, int* can, CUdevice device, CUdevice peer) {
  BEGIN(false)
  *can = device != peer;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuDevicePrimaryCtxRetain, CUcontext* context, CUdevice device) {
  BEGIN(false)
  *context = &contexts[device];
  return end(CUDA_SUCCESS);
}

FUNCTION(cuCtxGetCurrent, CUcontext* context) {
  BEGIN(false)
  *context = current;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuCtxSetCurrent, CUcontext context) {
  BEGIN(false)
  current = context;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuCtxSynchronize, void) {
  BEGIN(true)
  return end(mock_run_all(current->device));
}

FUNCTION(cuCtxEnablePeerAccess, CUcontext peer, unsigned int flags) {
  (void)flags;
  BEGIN(true)
  static bool allowed[NUM_DEVICES][NUM_DEVICES];
  bool before = allowed[current->device][peer->device];
  allowed[current->device][peer->device] = true;
  return end(before ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS);
}

/* ---- memory ---- */
FUNCTION(cuMemGetInfo_v2, size_t* free_bytes, size_t* total) {
  BEGIN(true)
  mock_memory_info(current->device, free_bytes, total);
  return end(CUDA_SUCCESS);
}

FUNCTION(cuMemAlloc_v2, CUdeviceptr* pointer, size_t bytes) {
  BEGIN(true)
  return end(mock_allocate(current->device, bytes, pointer));
}

FUNCTION(cuMemFree_v2, CUdeviceptr pointer) {
  BEGIN(true)
  return end(mock_release(pointer));
}

FUNCTION(cuPointerGetAttributes, unsigned int count, const int* attributes, void** data, CUdeviceptr pointer) {
  (void)count, (void)attributes;
  BEGIN(true)
  const void* address = (const void*)(uintptr_t)pointer;
  *(unsigned int*)data[0] = mock_is_device(address) ? 2 : mock_is_pinned(address) ? 1 : 0;
  return end(CUDA_SUCCESS);
}

static CUresult copy(CUstream stream, void* to, const void* from, size_t bytes) {
  Operation* operation = mock_give(mock_stream(current->device, stream));
  operation->from = from;
  operation->to = to;
  operation->num_bytes = bytes;
  return CUDA_SUCCESS;
}

FUNCTION(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  BEGIN(true)
  if (mock_is_pinned(from)) return end(copy(stream, (void*)(uintptr_t)to, from, bytes));
  Operation* operation = mock_give(mock_stream(current->device, stream));
  operation->staged = malloc(bytes);
  memcpy(operation->staged, from, bytes);
  operation->from = operation->staged;
  operation->to = (char*)(uintptr_t)to;
  operation->num_bytes = bytes;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuMemcpyDtoHAsync_v2, void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  BEGIN(true)
  copy(stream, to, (const void*)(uintptr_t)from, bytes);
  return end(mock_is_pinned(to) ? CUDA_SUCCESS : mock_run_until(mock_stream(current->device, stream), UINT64_MAX));
}

FUNCTION(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  BEGIN(true)
  return end(copy(stream, (void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes));
}

FUNCTION(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
         CUstream stream) {
  BEGIN(true)
  mock_counts[PEERS] += to_context != from_context;
  return end(copy(stream, (void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes));
}

FUNCTION(cuMemsetD8Async, CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  BEGIN(true)
  if (value != 0) return end(CUDA_ERROR_INVALID_VALUE);
  Operation* operation = mock_give(mock_stream(current->device, stream));
  operation->clears = true;
  operation->to = (char*)(uintptr_t)to;
  operation->num_bytes = count;
  return end(CUDA_SUCCESS);
}

/* ---- streams and events ---- */
FUNCTION(cuStreamCreate, CUstream* stream, unsigned int flags) {
  BEGIN(true)
  *stream = mock_make_stream(current->device, flags == CU_STREAM_DEFAULT);
  return end(CUDA_SUCCESS);
}

FUNCTION(cuStreamDestroy_v2, CUstream stream) {
  BEGIN_ENDING
  mock_end_stream(stream);
  return end(begun);
}

FUNCTION(cuStreamSynchronize, CUstream stream) {
  BEGIN(true)
  CUstream waited = mock_stream(current->device, stream);
  mock_counts[SYNCS] += 1;
  if (waited->recording != NULL) { /* a graph cannot hold a wait of the host */
    waited->recording->broken = true;
    return end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return end(mock_run_until(waited, UINT64_MAX));
}

FUNCTION(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags) {
  (void)flags;
  BEGIN(true)
  CUstream waits = mock_stream(current->device, stream);
  mock_counts[WAITS] += 1;
  if (event->stream == NULL) return end(CUDA_SUCCESS);
  if (waits->recording != NULL) {
    waits->recording->broken = true;
    return end(905);
  }
  Operation* operation = mock_give(waits);
  operation->behind = event->stream;
  operation->until = event->number;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuEventCreate, CUevent* event, unsigned int flags) {
  (void)flags;
  BEGIN(true)
  *event = calloc(1, sizeof **event);
  (*event)->device = current->device;
  mock_counts[EVENTS] += 1;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuEventDestroy_v2, CUevent event) {
  BEGIN_ENDING
  if (event->stream != NULL) mock_run_until(event->stream, event->number);
  free(event);
  mock_counts[EVENTS] -= 1;
  return end(begun);
}

FUNCTION(cuEventRecord, CUevent event, CUstream stream) {
  BEGIN(true)
  CUstream records = mock_stream(current->device, stream);
  if (event->device != current->device || records->device != current->device) return end(400);
  if (event->stream != NULL) mock_run_until(event->stream, event->number); /* the operation of before refers to it */
  Operation* operation = mock_give(records);
  operation->event = event;
  event->stream = records;
  event->number = operation->number;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuEventQuery, CUevent event) {
  BEGIN(true)
  return end(event->stream == NULL || event->stream->done >= event->number ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

FUNCTION(cuEventSynchronize, CUevent event) {
  BEGIN(true)
  return end(event->stream == NULL ? CUDA_SUCCESS : mock_run_until(event->stream, event->number));
}

FUNCTION(cuEventElapsedTime, float* milliseconds, CUevent start, CUevent stop) {
  BEGIN(true)
  if (start->stream == NULL || stop->stream == NULL) return end(400);
  if (start->stream->done < start->number || stop->stream->done < stop->number) return end(CUDA_ERROR_NOT_READY);
  *milliseconds = (float)(stop->milliseconds - start->milliseconds);
  return end(CUDA_SUCCESS);
}
