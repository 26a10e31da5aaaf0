/* The CUDA device on a simulated driver, which TILEWRIGHT_CUDA_DRIVER names: every path of it, every failure of every
 * function of the driver, and many threads. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../device/mock_cuda.h"
#include "check.h"
#include "internal.h"

static const DLDevice cpu = {kDLCPU, 0}, first = {kDLCUDA, 0}, second = {kDLCUDA, 1};
static const DLDataType float32 = {kDLFloat, 32, 1}, int32 = {kDLInt, 32, 1}, handle = {kDLOpaqueHandle, 64, 1};
static const int32_t one[3] = {1, 1, 1};
static const char ptx[] =
    ".version 8.0\n.visible .entry add_one(\n.visible .entry fill(\n.visible .entry use_shared(\n.visible .entry show_map(\n"
    ".visible .entry crash(\n.visible .entry show_args(";

static void (*inject)(const char* function, int after, CUresult result);
static bool (*is_pending)(void);
static int64_t (*count)(int what);
static void (*recover)(void);
static void (*forget_context)(void);
static void (*set_memory)(int device, uint64_t num_bytes);
static int (*alloc_pinned)(void** pointer, size_t bytes, unsigned int flags);
static int (*free_pinned)(void* pointer);

static void find(void* library, const char* name, void* out) {
  void* found = dlsym(library, name);
  CHECK(found != NULL);
  memcpy(out, &found, sizeof found);
}

static void open_mock(void) {
  void* library = dlopen(getenv("TILEWRIGHT_CUDA_DRIVER"), RTLD_NOW);
  CHECK(library != NULL);
  find(library, "mock_cuda_fail", &inject);
  find(library, "mock_cuda_is_pending", &is_pending);
  find(library, "mock_cuda_count", &count);
  find(library, "mock_cuda_recover", &recover);
  find(library, "mock_cuda_forget_context", &forget_context);
  find(library, "mock_cuda_set_memory", &set_memory);
  find(library, "cuMemHostAlloc", &alloc_pinned);
  find(library, "cuMemFreeHost", &free_pinned);
}

static void fails(int32_t status, const char* kind, const char* part) {
  CHECK(status == -1);
  CHECK_TEXT(tilewright_error_kind(), kind);
  if (strstr(tilewright_error_message(), part) == NULL) CHECK_TEXT(tilewright_error_message(), part);
  tilewright_clear_error();
}

static void* make(DLDevice device, uint64_t num_bytes) {
  void* made = NULL;
  CHECK(tilewright_device_alloc(device, num_bytes, 64, float32, &made) == 0);
  return made;
}

static void give_back(DLDevice device, void* pointer) { CHECK(tilewright_device_free(device, pointer) == 0); }

/* What arrays of the process have, by the message of an allocation that cannot be. */
static void nothing_in_use(DLDevice device) {
  void* unused;
  fails(tilewright_device_alloc(device, (uint64_t)1 << 40, 64, float32, &unused), "MemoryError", "and arrays of this process have 0");
}

static void* find_kernel(DLDevice device, void* module, const char* name) {
  void* function = NULL;
  CHECK(tilewright_module_function(device, module, name, &function) == 0);
  return function;
}

/* ---- a driver that cannot be used ---- */
static void without_a_driver(void) {
  void* out;
  TVMFFIAny value;
  const char* mock = getenv("TILEWRIGHT_CUDA_DRIVER");
  char* kept = strdup(mock);
  setenv("TILEWRIGHT_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  CHECK(tilewright_device_attribute(first, TILEWRIGHT_ATTRIBUTE_EXISTS, &value) == 0 && value.v_int64 == 0);
  CHECK(tilewright_error_kind() == NULL);
  CHECK(tilewright_device_attribute(first, TILEWRIGHT_ATTRIBUTE_WARP_SIZE, &value) == 0 && value.type_index == TILEWRIGHT_NONE);
  fails(tilewright_device_require(first), "RuntimeError", "cuda(0) cannot be used: there is no CUDA driver here: /nowhere/libcuda.so: ");
  fails(tilewright_device_alloc(first, 8, 64, float32, &out), "RuntimeError", "cuda(0) cannot be used: there is no CUDA driver here");
  fails(tilewright_stream_create(first, &out), "RuntimeError", "cannot be used");
  setenv("TILEWRIGHT_CUDA_DRIVER", "libdl.so.2", 1);
  fails(tilewright_device_require(first), "RuntimeError", "libdl.so.2 has no function cuInit: this is not a CUDA driver");
  setenv("TILEWRIGHT_CUDA_DRIVER", kept, 1);
  free(kept);
  inject("cuInit", 0, CUDA_ERROR_NO_DEVICE);
  fails(tilewright_device_require(first), "RuntimeError", "cannot be used: CUDA_ERROR_NO_DEVICE: no more is known");
  inject("cuDeviceGetCount", 0, 12345);
  fails(tilewright_device_require(first), "RuntimeError", "cannot be used: error 12345 of the CUDA driver");
  inject("cuDeviceGetName", 1, CUDA_ERROR_INVALID_VALUE);
  fails(tilewright_device_require(first), "RuntimeError", "cannot be used: CUDA_ERROR_INVALID_VALUE: invalid argument");
  CHECK(tilewright_device_require(first) == 0);
  fails(tilewright_stream_create((DLDevice){kDLCUDA, 2}, &out), "ValueError", "there is no cuda(2): this process has 2 such devices");
  fails(tilewright_stream_create((DLDevice){kDLCUDA, -1}, &out), "ValueError", "there is no cuda(-1)");
  inject("cuDevicePrimaryCtxRetain", 0, CUDA_ERROR_OUT_OF_MEMORY);
  fails(tilewright_stream_create(first, &out), "RuntimeError", "cuda(0) could not be opened: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
}

/* ---- attributes ---- */
static int64_t number(int32_t attribute) {
  TVMFFIAny value;
  CHECK(tilewright_device_attribute(first, attribute, &value) == 0 && value.type_index == TILEWRIGHT_INT);
  return value.v_int64;
}

static void is_text(int32_t attribute, const char* wanted) {
  TVMFFIAny value;
  const char* data;
  size_t size;
  CHECK(tilewright_device_attribute(first, attribute, &value) == 0 && tilewright_get_bytes(&value, &data, &size) == 0);
  CHECK(size == strlen(wanted) && memcmp(data, wanted, size) == 0);
  tilewright_any_release(&value);
}

static void attributes_of_a_child(void) {
  is_text(TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION, "9.0");
  CHECK(number(TILEWRIGHT_ATTRIBUTE_EXISTS) == 1 && number(TILEWRIGHT_ATTRIBUTE_L2_BYTES) == 62914560);
}

static void attributes(void) {
  TVMFFIAny value;
  is_text(TILEWRIGHT_ATTRIBUTE_DEVICE_NAME, "Mock GPU 0");
  is_text(TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION, "9.0");
  is_text(TILEWRIGHT_ATTRIBUTE_MAX_THREAD_DIMENSIONS, "[1024, 1024, 64]");
  CHECK(number(TILEWRIGHT_ATTRIBUTE_EXISTS) == 1 && number(TILEWRIGHT_ATTRIBUTE_WARP_SIZE) == 32);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024 && number(TILEWRIGHT_ATTRIBUTE_MULTI_PROCESSOR_COUNT) == 132);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) == 49152 && number(TILEWRIGHT_ATTRIBUTE_MAX_CLOCK_RATE) == 1980000);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK) == 65536 && number(TILEWRIGHT_ATTRIBUTE_L2_BYTES) == 62914560);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY) == 232448);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_SHARED_MEMORY_PER_MULTI_PROCESSOR) == 233472);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_REGISTERS_PER_MULTI_PROCESSOR) == 65536);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_THREADS_PER_MULTI_PROCESSOR) == 2048 && number(TILEWRIGHT_ATTRIBUTE_BLOCKS_PER_MULTI_PROCESSOR) == 32);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_MEMORY_CLOCK_RATE) == 3201000 && number(TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS) == 6144);
  CHECK(number(TILEWRIGHT_ATTRIBUTE_DRIVER_VERSION) == 12090 && number(TILEWRIGHT_ATTRIBUTE_API_VERSION) == 12000);
  int64_t total = number(TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY), before = number(TILEWRIGHT_ATTRIBUTE_FREE_MEMORY);
  void* memory = make(first, 1 << 20);
  CHECK(total == 256 << 20 && number(TILEWRIGHT_ATTRIBUTE_FREE_MEMORY) == before - (1 << 20));
  give_back(first, memory); /* what the pool keeps is free */
  CHECK(number(TILEWRIGHT_ATTRIBUTE_FREE_MEMORY) == before && count(BYTES) > 0);
  CHECK(tilewright_device_attribute(first, 10, &value) == 0 && value.type_index == TILEWRIGHT_NONE);
  inject("cuMemGetInfo_v2", 0, CUDA_ERROR_INVALID_VALUE);
  fails(tilewright_device_attribute(first, TILEWRIGHT_ATTRIBUTE_FREE_MEMORY, &value), "RuntimeError", "cuda(0) could not say how much");
  fails(tilewright_device_attribute((DLDevice){kDLCUDA, 9}, TILEWRIGHT_ATTRIBUTE_WARP_SIZE, &value), "ValueError", "there is no cuda(9)");
}

/* ---- memory ---- */
static void pool(void) {
  void* unused;
  int64_t before = count(ALLOCATED);
  void* memory = make(first, 1000);
  give_back(first, memory);
  CHECK(make(first, 900) == memory); /* of the same size class */
  void* another = make(first, 1000);
  CHECK(another != memory && count(ALLOCATED) <= before + 2);
  give_back(first, memory);
  give_back(first, another);
  fails(tilewright_device_free(first, memory), "ValueError", "is not memory of cuda(0), or it was freed before");
  fails(tilewright_device_alloc(first, 8, 1024, float32, &unused), "ValueError", "memory of cuda(0) is aligned to 256 bytes, not to 1024");
  fails(tilewright_device_alloc(first, UINT64_MAX, 64, float32, &unused), "MemoryError", "cuda(0) has no memory for 18446744073709551615 bytes");

  /* When there is no more, what the pool keeps is given up first; and after a failure all is as before. */
  set_memory(0, 64 << 20);
  void* half = make(first, 32 << 20);
  give_back(first, half);
  void* whole = make(first, 48 << 20);
  fails(tilewright_device_alloc(first, 32 << 20, 64, float32, &unused), "MemoryError",
        "cuda(0) has no memory for 33554432 bytes: 16777216 of 67108864 are free, and arrays of this process have 50331648");
  give_back(first, whole);
  half = make(first, 32 << 20);
  give_back(first, half);
  set_memory(0, 0);

  /* Many at a time. */
  void* many[500];
  for (int i = 0; i < 500; ++i) many[i] = make(first, 512 + (uint64_t)i * 97);
  for (int i = 0; i < 500; ++i) give_back(first, many[(i * 7) % 500]);
  nothing_in_use(first);
}

/* Memory that was freed in a stream is used in that stream at once, and in others when the work before is done. */
static void freed_in_order(void) {
  void *streams[2], *module;
  float values[4] = {1, 2, 3, 4}, read[4];
  int64_t four = 4;
  CHECK(tilewright_stream_create(first, &streams[0]) == 0 && tilewright_stream_create(first, &streams[1]) == 0);
  CHECK(tilewright_module_load(first, ptx, sizeof ptx, &module) == 0);
  void* kernel = find_kernel(first, module, "add_one");
  void* source = make(first, 3333);
  CHECK(tilewright_device_copy(values, 0, cpu, source, 0, first, sizeof values, NULL) == 0);
  for (int turn = 0; turn < 2; ++turn) { /* from a stream to another, and from a stream to the default one */
    CHECK(tilewright_stream_set(first, streams[0]) == 0);
    void* target = make(first, 77777);
    void* args[3] = {&source, &target, &four};
    CHECK(tilewright_launch(first, kernel, args, 3, one, one, 0, NULL) == 0);
    void* result = make(first, 99999);
    CHECK(tilewright_device_copy(target, 0, first, result, 0, first, sizeof values, NULL) == 0);
    give_back(first, target); /* the copy from it still waits in the stream */
    CHECK(make(first, 77777) == target);
    give_back(first, target);
    CHECK(tilewright_stream_set(first, turn == 0 ? streams[1] : NULL) == 0);
    void* next = make(first, 77777);
    CHECK((next == target) == (turn == 1));
    CHECK(tilewright_device_copy(source, 0, first, next, 0, first, sizeof values, NULL) == 0);
    CHECK(tilewright_stream_sync(first, NULL) == 0);
    CHECK(tilewright_device_copy(result, 0, first, read, 0, cpu, sizeof read, streams[0]) == 0);
    for (int i = 0; i < 4; ++i) CHECK(read[i] == values[i] + 1);
    give_back(first, next);
    CHECK(tilewright_stream_set(first, streams[0]) == 0);
    give_back(first, result);
  }
  CHECK(tilewright_stream_set(first, NULL) == 0);
  void* idle = make(first, 77777); /* freed in the default stream */
  give_back(first, idle);
  CHECK(tilewright_stream_set(first, streams[1]) == 0);
  void* again = make(first, 77777);
  CHECK(again == idle);
  give_back(first, again);
  give_back(first, source);
  CHECK(tilewright_module_unload(first, module) == 0);
  CHECK(tilewright_stream_free(first, streams[0]) == 0 && tilewright_stream_free(first, streams[1]) == 0);
  void* now = streams[0];
  CHECK(tilewright_stream_current(first, &now) == 0 && now == NULL); /* the thread's own has ended */
  CHECK(tilewright_stream_free(first, NULL) == 0);
  nothing_in_use(first);
}

/* ---- copies ---- */
static void round_trip(uint64_t num_bytes, unsigned char* host, unsigned char* back) {
  for (uint64_t i = 0; i < num_bytes; ++i) host[i] = (unsigned char)(i * 31 + i / 251);
  void *there = make(first, num_bytes + 3), *elsewhere = make(first, num_bytes + 5), *peer = make(second, num_bytes);
  CHECK(tilewright_device_copy(host, 0, cpu, there, 3, first, num_bytes, NULL) == 0);
  unsigned char last = host[num_bytes - 1];
  host[num_bytes - 1] = 0; /* it has been read */
  CHECK(tilewright_device_copy(there, 3, first, elsewhere, 5, first, num_bytes, NULL) == 0);
  CHECK(tilewright_device_copy(elsewhere, 5, first, peer, 0, second, num_bytes, NULL) == 0);
  memset(back, 0, num_bytes);
  CHECK(tilewright_device_copy(peer, 0, second, back, 0, cpu, num_bytes, NULL) == 0);
  host[num_bytes - 1] = last;
  CHECK(memcmp(host, back, num_bytes) == 0);
  give_back(first, there);
  give_back(first, elsewhere);
  give_back(second, peer);
}

static void copies(void) {
  uint64_t most = ((uint64_t)4 << 20) * 3 + 77;
  unsigned char *host = malloc(most), *back = malloc(most);
  const uint64_t sizes[] = {1, 3, 4096, (256 << 10) - 1, 256 << 10, 4 << 20, (4 << 20) + 1, most};
  int64_t peers = count(PEERS);
  inject("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY); /* without staging memory, which is made now, it works too */
  round_trip(1 << 20, host, back);
  CHECK(!is_pending());
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) round_trip(sizes[i], host, back);
  CHECK(count(PEERS) == peers + 1 + (int64_t)(sizeof sizes / sizeof *sizes));
  /* Pinned memory, which the driver reads when the copy is done and not before. */
  void *pinned, *pinned_back;
  CHECK(alloc_pinned(&pinned, most, 0) == 0 && alloc_pinned(&pinned_back, most, 0) == 0);
  round_trip(1000, pinned, pinned_back);
  round_trip(most, pinned, pinned_back);
  free_pinned(pinned);
  free_pinned(pinned_back);
  free(host);
  free(back);

  /* Zeros, by the driver. */
  int32_t five = 5, read[4];
  int64_t shape[1] = {4};
  void* memory = make(first, 16);
  CHECK(tilewright_device_table(kDLCUDA)->clear(0, memory, 16, NULL) == 0);
  CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, 16, NULL) == 0 && read[0] == 0 && read[3] == 0);
  CHECK(tilewright_device_copy(&five, 0, cpu, memory, 4, first, 4, NULL) == 0);
  CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, 16, NULL) == 0 && read[0] == 0 && read[1] == 5 && read[2] == 0);
  give_back(first, memory);
  TilewrightObject* tensor; /* strides on the host */
  CHECK(tilewright_tensor_create(shape, 1, int32, first, &tensor) == 0);
  int32_t spread[7] = {1, 0, 2, 0, 3, 0, 4};
  int64_t step = 2;
  DLTensor from = {spread, cpu, 1, int32, shape, &step, 0}, to = {read, cpu, 1, int32, shape, NULL, 0};
  CHECK(tilewright_tensor_copy(&from, tilewright_tensor_dltensor(tensor)) == 0);
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(tensor), &to) == 0 && read[0] == 1 && read[1] == 2 && read[3] == 4);
  tilewright_object_release(tensor);
}

/* ---- streams and events ---- */
static void streams(void) {
  void *stream, *start, *end, *module, *now;
  double milliseconds = -1;
  CHECK(tilewright_stream_create(first, &stream) == 0 && stream != NULL);
  CHECK(tilewright_event_create(first, &start) == 0 && tilewright_event_create(first, &end) == 0);
  CHECK(tilewright_module_load(first, ptx, strlen(ptx), &module) == 0); /* without a zero at its end */
  void* kernel = find_kernel(first, module, "fill");
  void* memory = make(first, 64 * 4);
  int32_t value = 7, read[64];
  void* args[2] = {&memory, &value};
  const int32_t grid[3] = {2, 1, 1}, block[3] = {32, 1, 1};
  CHECK(tilewright_event_record(first, start, stream) == 0);
  CHECK(tilewright_launch(first, kernel, args, 2, grid, block, 0, stream) == 0);
  CHECK(tilewright_event_record(first, end, stream) == 0);
  fails(tilewright_event_elapsed(first, start, end, &milliseconds), "RuntimeError", "cuda(0) could not compare two events");
  CHECK(tilewright_event_sync(first, end) == 0 && tilewright_event_elapsed(first, start, end, &milliseconds) == 0 && milliseconds >= 0);
  value = 100; /* was copied */
  CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, sizeof read, NULL) == 0 && read[0] == 7 && read[63] == 70);

  /* One stream behind another; the current one of a thread. */
  CHECK(tilewright_stream_set(first, stream) == 0 && tilewright_stream_current(first, &now) == 0 && now == stream);
  CHECK(tilewright_launch(first, kernel, args, 2, grid, block, 0, NULL) == 0);
  void* other;
  CHECK(tilewright_stream_create(first, &other) == 0 && tilewright_stream_wait(first, other, NULL) == 0);
  CHECK(tilewright_stream_wait(first, other, other) == 0);
  CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, sizeof read, other) == 0 && read[0] == 100);
  CHECK(tilewright_stream_set(first, NULL) == 0);

  /* Another library changes the context of the thread. */
  forget_context();
  CHECK(tilewright_stream_sync(first, NULL) == 0);
  CHECK(tilewright_event_free(first, start) == 0 && tilewright_event_free(first, end) == 0 && tilewright_event_free(first, NULL) == 0);
  CHECK(tilewright_stream_free(first, stream) == 0 && tilewright_stream_free(first, other) == 0);
  CHECK(tilewright_module_unload(first, module) == 0);
  give_back(first, memory);
}

/* ---- code ---- */
static void code(void) {
  void *module, *function;
  fails(tilewright_module_load(first, "nonsense", 8, &module), "RuntimeError",
        "cuda(0) could not load a module: CUDA_ERROR_INVALID_PTX: no more is known\nThe driver's compiler says:\nptxas application ptx "
        "input, line 1; fatal   : Parsing error near 'nonsense': syntax error");
  inject("cuModuleLoadDataEx", 0, CUDA_ERROR_OUT_OF_MEMORY);
  fails(tilewright_module_load(first, ptx, 0, &module), "RuntimeError", "cuda(0) could not load a module: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  CHECK(tilewright_module_load(first, ptx, 0, &module) == 0); /* as it is */
  fails(tilewright_module_function(first, module, "absent", &function), "ValueError", "the module has no kernel absent");
  inject("cuFuncGetAttribute", 0, CUDA_ERROR_INVALID_VALUE);
  fails(tilewright_module_function(first, module, "fill", &function), "RuntimeError", "could not prepare the kernel fill");
  function = find_kernel(first, module, "use_shared");
  void* memory = make(first, 4096);
  void* args[1] = {&memory};
  const int32_t block[3] = {1024, 1, 1}, too_large[3] = {1024, 2, 1};
  int32_t read[1024];
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(tilewright_launch(first, function, args, 1, one, block, turn == 0 ? 4096 : 200000, NULL) == 0);
    CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, sizeof read, NULL) == 0 && read[0] == 1023 && read[1023] == 0);
  }
  fails(tilewright_launch(first, function, args, 1, one, block, 300000, NULL), "ValueError",
        "use_shared cannot have 300000 bytes of dynamic shared memory: a block of cuda(0) has 232448 bytes at most");
  fails(tilewright_launch(first, function, args, 1, one, too_large, 64, NULL), "RuntimeError",
        "cuda(0) could not launch use_shared on a grid of (1, 1, 1) blocks of (1024, 2, 1) threads, with 64 bytes of dynamic shared "
        "memory and 32 registers a thread: CUDA_ERROR_INVALID_VALUE: invalid argument");
  TilewrightKernelNeeds needs;
  CHECK(tilewright_kernel_needs(first, function, 256, 60000, &needs) == 0);
  CHECK(needs.registers == 32 && needs.shared_bytes == 1024 && needs.blocks_per_multi_processor == 233472 / (60000 + 1024 + 1024));
  TilewrightLaunch how = {{8, 2, 1}, {1024, 1, 1}, {4, 2, 1}, 4096, TILEWRIGHT_LAUNCH_OVERLAPS};
  int64_t overlaps = count(OVERLAPS);
  CHECK(tilewright_launch_with(first, function, args, 1, &how, NULL) == 0 && count(CLUSTER) == 8 && count(OVERLAPS) == overlaps + 1);
  how.cluster[0] = 8;
  CHECK(tilewright_launch_with(first, function, args, 1, &how, NULL) == 0 && count(CLUSTER) == 16);
  how.cluster[0] = 3;
  fails(tilewright_launch_with(first, function, args, 1, &how, NULL), "RuntimeError", "threads, in clusters of (3, 2, 1), with");
  give_back(first, memory);
  CHECK(tilewright_module_unload(first, module) == 0);
}

/* ---- modules of kernels with tensor maps ---- */
static void read_map(void* memory, uint64_t* words) {
  CHECK(tilewright_device_copy(memory, 0, first, words, 0, cpu, 128, NULL) == 0);
}

static void tensor_maps(void) {
  DLDataType types[2] = {handle, int32};
  const char* axes[1] = {"blockIdx.x"};
  TilewrightTensorMap map = {.position = 1, .base = 0, .offset = 64};
  map.tensor = (TilewrightTensor){.dtype = {kDLFloat, 16, 1}, .rank = 3, .swizzle = 128, .promotion = 256, .box = {64, 8, 1}, .element_strides = {1, 1, 2}};
  map.dims[0] = (TilewrightSize){64, {-1, -1, -1, -1}};
  map.dims[1] = (TilewrightSize){2, {1, -1, -1, -1}};
  map.dims[2] = (TilewrightSize){1, {1, 1, -1, -1}};
  map.strides[0] = (TilewrightSize){128, {-1, -1, -1, -1}};
  map.strides[1] = (TilewrightSize){256, {1, -1, -1, -1}};
  TilewrightKernel kernel = {"show_map", types, 2, 1, axes, 0, 0, 1, &map};
  TilewrightDeviceModule* module;
  TilewrightObject* function;
  TVMFFIAny result = {0};
  uint64_t words[16];
  CHECK(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &kernel, 1, &module) == 0);
  CHECK(tilewright_device_module_function(module, "show_map", &function) == 0);
  void *memory = make(first, 4096), *elsewhere = make(first, 4096);
  int64_t encoded = count(ENCODED);
  for (int turn = 0; turn < 4; ++turn) {
    TVMFFIAny args[3] = {{.type_index = TILEWRIGHT_POINTER, .v_ptr = turn == 2 ? elsewhere : memory},
                         {.type_index = TILEWRIGHT_INT, .v_int64 = turn == 3 ? 6 : 5},
                         {.type_index = TILEWRIGHT_INT, .v_int64 = 1}};
    CHECK(tilewright_function_call(function, args, 3, &result) == 0);
    CHECK(count(ENCODED) == encoded + (turn == 0 ? 1 : turn)); /* not for the second time of the same */
    read_map(args[0].v_ptr, words);
    CHECK(words[0] == (uint64_t)(uintptr_t)args[0].v_ptr + 64 && words[1] == (6 | 3 << 8 | 3 << 24 | (uint64_t)3 << 32));
    int64_t n = args[1].v_int64;
    CHECK(words[2] == 64 && (int64_t)words[3] == 2 * n && (int64_t)words[4] == n * n && words[12] == 128 && (int64_t)words[13] == 256 * n);
    CHECK(words[7] == (64 | (uint64_t)1 << 32) && words[8] == (8 | (uint64_t)1 << 32) && words[9] == (1 | (uint64_t)2 << 32));
  }
  TVMFFIAny args[3] = {{.type_index = TILEWRIGHT_POINTER, .v_ptr = (char*)memory + 4},
                       {.type_index = TILEWRIGHT_INT, .v_int64 = 5},
                       {.type_index = TILEWRIGHT_INT, .v_int64 = 1}};
  fails(tilewright_function_call(function, args, 3, &result), "RuntimeError", "cuda(0) could not describe a tensor of float16 at 0x");
  args[1].v_int64 = -1;
  fails(tilewright_function_call(function, args, 3, &result), "ValueError", "has a dimension 1 that is negative or too large");
  args[0].v_ptr = memory;
  args[1].v_int64 = INT64_MAX / 2;
  fails(tilewright_function_call(function, args, 3, &result), "ValueError", "has a dimension 2 that is negative or too large");
  tilewright_object_release(function);
  tilewright_device_module_release(module);

  /* What cannot be. */
  TilewrightTensorMap wrong = map;
  kernel.tensor_maps = &wrong;
  wrong.position = 3;
  fails(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &kernel, 1, &module), "ValueError", "cannot be the parameter 3 of show_map");
  wrong = map;
  wrong.base = 1;
  fails(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &kernel, 1, &module), "ValueError", "is of the argument 1, which is not a pointer");
  wrong = map;
  wrong.tensor.rank = 6;
  fails(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &kernel, 1, &module), "ValueError", "has 6 dimensions; 1 to 5 are possible");
  wrong = map;
  wrong.strides[1].arguments[3] = 0;
  fails(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &kernel, 1, &module), "ValueError", "a size by the argument 0, which is not an integer");
  TilewrightKernel many = kernel;
  many.num_tensor_maps = 17;
  fails(tilewright_device_module_create(kDLCUDA, ptx, sizeof ptx, &many, 1, &module), "ValueError", "show_map has 17 tensor maps");
  TilewrightTensor tensor = map.tensor;
  _Alignas(64) unsigned char out[128];
  tensor.swizzle = 48;
  fails(tilewright_tensor_map(first, &tensor, out), "ValueError", "no tensor map of cuda(0) is of float16 with interleave 0, swizzle 48");
  const DLDataType known[] = {{kDLInt, 8, 1}, {kDLUInt, 16, 1}, {kDLUInt, 32, 1}, {kDLInt, 32, 1}, {kDLUInt, 64, 1}, {kDLInt, 64, 1},
                              {kDLFloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLBfloat, 16, 1}};
  for (int i = 0; i < 10; ++i) {
    tensor = (TilewrightTensor){.base = memory, .dtype = known[i], .rank = 1, .dims = {8}, .box = {8}, .element_strides = {1}};
    CHECK(tilewright_tensor_map(first, &tensor, out) == 0 && out[8] == i);
  }
  tensor.dtype = (DLDataType){kDLFloat, 80, 1};
  fails(tilewright_tensor_map(first, &tensor, out), "ValueError", "no tensor map of cuda(0) is of float80");
  give_back(first, memory);
  give_back(first, elsewhere);
}

/* The same from the description that a library carries. */
#define slot __tilewright_packed_show_map
void* slot;
char __tilewright_imports[2048];
uint64_t __tilewright_imports_size;

static int32_t bind_text(const char* text) {
  char* block = __tilewright_imports;
  memset(block, 0, sizeof __tilewright_imports);
  memcpy(block, "TWIMPORT\1", 9);
  static const char key[] = "device_module";
  uint64_t head = strlen(text), content = 8 + head + sizeof ptx, at = 12 + 4;
  uint32_t key_size = sizeof key - 1;
  CHECK(12 + 16 + key_size + content <= sizeof __tilewright_imports);
  memcpy(block + at, &key_size, 4);
  memcpy(block + at + 4, &content, 8);
  memcpy(block + at + 12, key, key_size);
  at += 12 + key_size;
  memcpy(block + at, &head, 8);
  memcpy(block + at + 8, text, head);
  memcpy(block + at + 8 + head, ptx, sizeof ptx);
  __tilewright_imports_size = at + content;
  void* itself = tw_open_library(NULL);
  CHECK(itself != NULL);
  return tw_bind_imports(itself, "library.so");
}

static void carried_maps(void) {
  static const char text[] =
      "{\"device_type\": 2, \"kernels\": [{\"name\": \"show_map\", \"arguments\": [\"handle\", \"int32\"], \"axes\": [\"blockIdx.x\"],"
      "\"has_shared_bytes\": false, \"overlaps\": true, \"tensor_maps\": [{\"position\": 1, \"base\": 0, \"dtype\": \"float16\", "
      "\"dims\": [64, [2, 1]], \"strides\": [128], \"box\": [64, 8], \"element_strides\": [1, 1], \"offset\": 256, \"swizzle\": 128, "
      "\"interleave\": 0, \"l2_promotion\": 128, \"fill_nan\": true}]}]}";
  CHECK(bind_text(text) == 0 && slot != NULL);
  void* memory = make(first, 4096);
  uint64_t words[16];
  int64_t overlaps = count(OVERLAPS);
  TVMFFIAny args[3] = {{.type_index = TILEWRIGHT_POINTER, .v_ptr = memory},
                       {.type_index = TILEWRIGHT_INT, .v_int64 = 5},
                       {.type_index = TILEWRIGHT_INT, .v_int64 = 1}};
  TVMFFIAny result = {0};
  CHECK(tilewright_call_packed("show_map", &slot, args, 3, &result) == 0 && count(OVERLAPS) == overlaps + 1);
  read_map(memory, words);
  CHECK(words[0] == (uint64_t)(uintptr_t)memory + 256 && words[2] == 64 && words[3] == 10 && words[12] == 128);
  CHECK(words[1] == (6 | 2 << 8 | 3 << 24 | (uint64_t)2 << 32 | (uint64_t)1 << 40));
  CHECK(tilewright_bind_function(&slot, NULL) == 0);
  give_back(first, memory);

  /* Every field is needed, and is of its kind. */
  static const char* const parts[] = {"position", "base", "dtype", "dims", "strides", "box", "element_strides", "offset",
                                      "swizzle",  "interleave", "l2_promotion", "fill_nan"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    char changed[sizeof text];
    memcpy(changed, text, sizeof text);
    char* found = strstr(strstr(changed, "tensor_maps"), parts[i]);
    *found = '_';
    fails(bind_text(changed), "ValueError", "library.so is damaged");
  }
  static const char* const wrong[][2] = {{"[2, 1]", "[[], 1]"}, {"[2, 1]", "[2, -1]"}, {"[2, 1]", "[]"}, {"[128]", "[1, 2]"}, {"[64, 8]", "[64, \"8\"]"}, {"float16", "flo16"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    char changed[sizeof text + 16];
    const char* place = strstr(strstr(text, "tensor_maps"), wrong[i][0]);
    size_t before = (size_t)(place - text);
    memcpy(changed, text, before);
    strcpy(changed + before, wrong[i][1]);
    strcat(changed, place + strlen(wrong[i][0]));
    fails(bind_text(changed), "ValueError", "library.so is damaged");
  }
}

/* ---- recordings ---- */
static void recordings(void) {
  void *module, *recording, *stream;
  CHECK(tilewright_module_load(first, ptx, sizeof ptx, &module) == 0);
  void *add = find_kernel(first, module, "add_one"), *fill = find_kernel(first, module, "fill");
  void *memory = make(first, 16), *result = make(first, 16);
  float read[4];
  int64_t four = 4;
  int32_t bits = 0x3f800000;
  int64_t launches = count(LAUNCHES), graphs = count(GRAPHS);
  CHECK(tilewright_stream_create(first, &stream) == 0 && tilewright_stream_set(first, stream) == 0);
  CHECK(tilewright_record_begin(first) == 0);
  fails(tilewright_record_begin(first), "RuntimeError", "this thread records work of cuda(0) already");
  void* scratch = make(first, 16);
  void *fill_args[2] = {&scratch, &bits}, *add_args[3] = {&scratch, &result, &four};
  CHECK(tilewright_launch(first, fill, fill_args, 2, (int32_t[3]){4, 1, 1}, one, 0, NULL) == 0);
  CHECK(tilewright_launch(first, add, add_args, 3, one, one, 0, NULL) == 0);
  CHECK(tilewright_device_copy(result, 0, first, memory, 0, first, 16, NULL) == 0);
  give_back(first, scratch);
  CHECK(make(first, 16) == scratch); /* again, later in the recording */
  give_back(first, scratch);
  fails(tilewright_device_copy(memory, 0, first, read, 0, cpu, 16, NULL), "RuntimeError", "cannot hold a copy to or from the memory of the host");
  CHECK(tilewright_record_end(first, &recording) == 0);
  void* now;
  CHECK(tilewright_stream_current(first, &now) == 0 && now == stream && count(GRAPHS) == graphs + 1);
  CHECK(tilewright_stream_set(first, NULL) == 0);
  void* different = make(first, 16);
  CHECK(different != scratch); /* which is the recording's */
  give_back(first, different);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(tilewright_device_table(kDLCUDA)->clear(0, memory, 16, NULL) == 0);
    CHECK(tilewright_recording_launch(first, recording, turn == 0 ? NULL : stream) == 0);
    CHECK(tilewright_device_copy(memory, 0, first, read, 0, cpu, 16, NULL) == 0 && read[0] == 2.0f);
  }
  CHECK(count(LAUNCHES) == launches + 2);
  CHECK(tilewright_recording_free(first, recording) == 0 && tilewright_recording_free(first, NULL) == 0 && count(GRAPHS) == graphs);

  /* What cannot be recorded, and a recording that is thrown away. */
  fails(tilewright_record_end(first, &recording), "RuntimeError", "this thread records no work of cuda(0)");
  CHECK(tilewright_record_begin(first) == 0);
  fails(tilewright_stream_sync(first, NULL), "RuntimeError", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  fails(tilewright_record_end(first, &recording), "RuntimeError", "cuda(0) could not record its work");
  CHECK(tilewright_record_begin(first) == 0);
  scratch = make(first, 5555);
  give_back(first, scratch);
  CHECK(tilewright_record_end(first, NULL) == 0);
  CHECK(make(first, 5555) == scratch);
  give_back(first, scratch);
  CHECK(tilewright_stream_free(first, stream) == 0 && tilewright_module_unload(first, module) == 0);
  give_back(first, memory);
  give_back(first, result);
  CHECK(count(GRAPHS) == graphs);
}

/* ---- a kernel that crashes ---- */
static void crash(void) {
  void *module, *recording, *unused;
  float value;
  CHECK(tilewright_module_load(first, ptx, sizeof ptx, &module) == 0);
  void* kernel = find_kernel(first, module, "crash");
  void* memory = make(first, 16);
  CHECK(tilewright_launch(first, kernel, NULL, 0, one, one, 0, NULL) == 0); /* nobody knows yet */
  fails(tilewright_stream_sync(first, NULL), "RuntimeError",
        "cuda(0) could not finish its work: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered. A kernel has crashed; "
        "the last one that was launched is crash. The device is lost to this process");
  fails(tilewright_device_copy(memory, 0, first, &value, 0, cpu, 4, NULL), "RuntimeError", "the last one that was launched is crash");
  fails(tilewright_device_alloc(first, 99999999, 64, float32, &unused), "RuntimeError", "could not allocate memory");
  recover();
  CHECK(tilewright_record_begin(first) == 0 && tilewright_launch(first, kernel, NULL, 0, one, one, 0, NULL) == 0);
  CHECK(tilewright_record_end(first, &recording) == 0 && tilewright_recording_launch(first, recording, NULL) == 0);
  fails(tilewright_stream_sync(first, NULL), "RuntimeError", "the last one that was launched is one of a recording that ends with crash");
  recover();
  CHECK(tilewright_recording_free(first, recording) == 0 && tilewright_module_unload(first, module) == 0);
  give_back(first, memory);
}

/* ---- every failure of the driver ---- */

/* Uses all there is, and gives back what it has, as far as it comes; -1 after the first failure. */
static int32_t use_everything(unsigned char* host) {
  void *small = NULL, *large = NULL, *peer = NULL, *scratch = NULL, *stream = NULL, *event = NULL, *module = NULL, *add = NULL;
  void *show = NULL, *recording = NULL;
  uint64_t num_bytes = 300 << 10;
  int64_t four = 4;
  double unused;
  bool records = false;
  _Alignas(64) unsigned char map[128];
  TVMFFIAny value = {0};
  int32_t status = -1;
#define TRY(call) \
  if ((call) != 0) goto end
  TRY(tilewright_device_attribute(first, TILEWRIGHT_ATTRIBUTE_FREE_MEMORY, &value));
  TRY(tilewright_device_alloc(first, 2222, 64, float32, &small));
  TRY(tilewright_device_alloc(first, num_bytes, 64, float32, &large));
  TRY(tilewright_device_alloc(second, num_bytes, 64, float32, &peer));
  TRY(tilewright_device_copy(host, 0, cpu, small, 0, first, 2222, NULL));
  TRY(tilewright_device_copy(host, 0, cpu, large, 0, first, num_bytes, NULL));
  TRY(tilewright_device_copy(large, 0, first, peer, 0, second, num_bytes, NULL));
  TRY(tilewright_device_copy(peer, 0, second, host, 0, cpu, num_bytes, NULL));
  TRY(tilewright_device_copy(small, 0, first, host, 0, cpu, 2222, NULL));
  TRY(tilewright_device_table(kDLCUDA)->clear(0, large, num_bytes, NULL));
  TRY(tilewright_stream_create(first, &stream));
  TRY(tilewright_event_create(first, &event));
  TRY(tilewright_event_record(first, event, stream));
  TRY(tilewright_event_sync(first, event));
  TRY(tilewright_event_elapsed(first, event, event, &unused));
  TRY(tilewright_stream_wait(first, stream, NULL));
  TRY(tilewright_module_load(first, ptx, sizeof ptx, &module));
  TRY(tilewright_module_function(first, module, "add_one", &add));
  TRY(tilewright_module_function(first, module, "use_shared", &show));
  void *args[3] = {&small, &large, &four}, *shared_args[1] = {&large};
  TRY(tilewright_launch(first, add, args, 3, one, one, 0, NULL));
  TRY(tilewright_launch(first, show, shared_args, 1, one, one, 100000, NULL));
  TilewrightLaunch how = {{16, 1, 1}, {1, 1, 1}, {16, 1, 1}, 0, TILEWRIGHT_LAUNCH_OVERLAPS};
  TRY(tilewright_launch_with(first, show, shared_args, 1, &how, stream));
  TilewrightTensor tensor = {.base = large, .dtype = float32, .rank = 1, .dims = {8}, .box = {8}, .element_strides = {1}};
  TRY(tilewright_tensor_map(first, &tensor, map));
  TilewrightKernelNeeds needs;
  TRY(tilewright_kernel_needs(first, show, 32, 0, &needs));
  TRY(tilewright_stream_set(first, stream));
  TRY(tilewright_device_alloc(first, 3333, 64, float32, &scratch));
  TRY(tilewright_device_free(first, scratch));
  scratch = NULL;
  TRY(tilewright_stream_set(first, NULL));
  TRY(tilewright_device_alloc(first, 3333, 64, float32, &scratch));
  TRY(tilewright_device_free(first, scratch));
  scratch = NULL;
  TRY(tilewright_record_begin(first));
  records = true;
  TRY(tilewright_device_alloc(first, 4444, 64, float32, &scratch));
  args[1] = &scratch;
  TRY(tilewright_launch(first, add, args, 3, one, one, 0, NULL));
  TRY(tilewright_device_free(first, scratch));
  scratch = NULL;
  records = false;
  TRY(tilewright_record_end(first, &recording));
  TRY(tilewright_recording_launch(first, recording, NULL));
  TRY(tilewright_stream_sync(first, NULL));
  status = 0;
#undef TRY
end:
  if (status != 0) CHECK(tilewright_error_kind() != NULL);
  if (records) tilewright_record_end(first, NULL);
  int32_t ended = 0;
  if (scratch != NULL) ended |= tilewright_device_free(first, scratch);
  ended |= recording != NULL ? tilewright_recording_free(first, recording) : 0;
  ended |= tilewright_stream_set(first, NULL);
  ended |= stream != NULL ? tilewright_stream_free(first, stream) : 0;
  ended |= event != NULL ? tilewright_event_free(first, event) : 0;
  ended |= module != NULL ? tilewright_module_unload(first, module) : 0;
  if (small != NULL) ended |= tilewright_device_free(first, small);
  if (large != NULL) ended |= tilewright_device_free(first, large);
  if (peer != NULL) ended |= tilewright_device_free(second, peer);
  tilewright_clear_error();
  return status | ended;
}

static void every_failure(int most) {
  unsigned char* host = calloc(1, 300 << 10);
#define NAME(name, symbol, arguments) symbol,
  static const char* const functions[] = {TW_CUDA_FUNCTIONS(NAME) TW_CUDA_NEWER_FUNCTIONS(NAME)};
#undef NAME
  CHECK(use_everything(host) == 0);
  int failures = 0;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    for (int after = 0; after < most; ++after) {
      int64_t streams_before = count(STREAMS), modules = count(MODULES), graphs = count(GRAPHS);
      inject(functions[i], after, after % 2 == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
      failures += use_everything(host) != 0;
      if (is_pending()) break; /* there are no so many calls */
      if (strstr(functions[i], "cuCtx") != NULL) continue; /* without a context, what should be ended cannot be */
      CHECK(count(STREAMS) == streams_before && count(MODULES) == modules && count(GRAPHS) == graphs);
      nothing_in_use(first);
    }
    inject("", 0, 0);
  }
  CHECK(failures > 50);
  CHECK(use_everything(host) == 0);
  free(host);
}

/* ---- a fork ---- */

/* A child can still be told of the devices, but not use them. */
static void forked(void) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    void* unused;
    attributes_of_a_child();
    fails(tilewright_device_alloc(first, 8, 64, float32, &unused), "RuntimeError", "cuda(0) cannot be used in a process that was forked");
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- many threads ---- */
static void* work(void* context) {
  int index = (int)(intptr_t)context;
  DLDevice device = {kDLCUDA, index % 2};
  void *stream, *module;
  CHECK(tilewright_stream_create(device, &stream) == 0);
  if (index >= 2) CHECK(tilewright_stream_set(device, stream) == 0);
  CHECK(tilewright_module_load(device, ptx, sizeof ptx, &module) == 0);
  void* kernel = find_kernel(device, module, "add_one");
  int64_t length = 100;
  float values[100], read[100];
  for (int turn = 0; turn < 30; ++turn) {
    for (int i = 0; i < 100; ++i) values[i] = (float)(index * 1000 + turn * 10 + i);
    void *from = make(device, sizeof values), *to = make(device, sizeof values + (uint64_t)turn * 700);
    CHECK(tilewright_device_copy(values, 0, cpu, from, 0, device, sizeof values, NULL) == 0);
    void* args[3] = {&from, &to, &length};
    CHECK(tilewright_launch(device, kernel, args, 3, one, one, 0, NULL) == 0);
    give_back(device, from);
    CHECK(tilewright_device_copy(to, 0, device, read, 0, cpu, sizeof read, NULL) == 0);
    for (int i = 0; i < 100; ++i) CHECK(read[i] == values[i] + 1);
    give_back(device, to);
  }
  CHECK(tilewright_stream_set(device, NULL) == 0);
  CHECK(tilewright_stream_free(device, stream) == 0 && tilewright_module_unload(device, module) == 0);
  return NULL;
}

static void threads(void) {
  pthread_t running[6];
  for (int i = 0; i < 6; ++i) CHECK(pthread_create(&running[i], NULL, work, (void*)(intptr_t)i) == 0);
  for (int i = 0; i < 6; ++i) CHECK(pthread_join(running[i], NULL) == 0);
  nothing_in_use(first);
  nothing_in_use(second);
}

int main(int argc, char** argv) {
  bool is_plain = argc > 2 && strcmp(argv[2], "plain") == 0;
  open_mock();
  without_a_driver();
  attributes();
  pool();
  freed_in_order();
  copies();
  streams();
  code();
  tensor_maps();
  carried_maps();
  recordings();
  crash();
  every_failure(is_plain ? 20 : 3);
  forked();
  threads();
  return 0;
}
