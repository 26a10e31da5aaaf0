/* Code for CUDA devices: PTX, which the driver compiles when it is loaded, or a binary; and launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

/* Shared memory that a block may have without asking for it. */
#define USUAL_SHARED_BYTES 49152

#define LOG_BYTES 16384

typedef struct Function {
  struct Function* next;
  CUfunction handle;
  const char* name;
  int32_t registers;
  _Atomic uint32_t allowed_bytes; /* dynamic shared memory that a launch may ask for as things are */
} Function;

typedef struct {
  CUmodule handle;
  TwMutex lock; /* of `functions` */
  Function* functions;
} Module;

/* ---- loading ---- */

/* True for what the driver reads up to a zero byte, whatever its size: PTX. Binaries begin with a number. */
static bool is_text(const unsigned char* image, size_t size) {
  static const unsigned char elf[4] = {0x7F, 'E', 'L', 'F'}, bundle[4] = {0x50, 0xED, 0x55, 0xBA};
  return size >= 4 && memcmp(image, elf, 4) != 0 && memcmp(image, bundle, 4) != 0;
}

/* The error of a module that was not loaded, with what the driver's compiler wrote. */
static int32_t load_failed(int32_t device_id, CUresult result, const char* log) {
  char words[256];
  char* message = malloc(LOG_BYTES + 512);
  if (message == NULL) return tw_cuda_fail(device_id, result, "load a module");
  tw_cuda_describe(result, words, sizeof words);
  snprintf(message, LOG_BYTES + 512, "cuda(%d) could not load a module: %s%s%s", (int)device_id, words,
           *log != 0 ? "\nThe driver's compiler says:\n" : "", log);
  tilewright_set_error("RuntimeError", message);
  free(message);
  return -1;
}

static CUresult load_image(const void* image, char* errors, CUmodule* out) {
  int options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[2] = {errors, (void*)(uintptr_t)LOG_BYTES};
  return tw_cu.ModuleLoadDataEx(out, image, 2, options, values);
}

int32_t tw_cuda_module_load(int32_t device_id, const void* image, size_t size, void** out) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  Module* module = calloc(1, sizeof *module);
  char* errors = calloc(1, LOG_BYTES + 1);
  bool lacks_end = size > 0 && is_text(image, size) && ((const char*)image)[size - 1] != 0;
  char* text = lacks_end ? malloc(size + 1) : NULL;
  if (module == NULL || errors == NULL || (lacks_end && text == NULL)) {
    free(text);
    free(errors);
    free(module);
    return tw_fail("MemoryError", "no memory to load a module of %zu bytes", size);
  }
  if (lacks_end) {
    memcpy(text, image, size);
    text[size] = 0;
  }
  tw_mutex_init(&module->lock);
  CUresult result = load_image(lacks_end ? text : image, errors, &module->handle);
  free(text);
  if (result == CUDA_SUCCESS) {
    *out = module;
  } else {
    load_failed(device_id, result, errors);
    free(module);
  }
  free(errors);
  return result == CUDA_SUCCESS ? 0 : -1;
}

int32_t tw_cuda_module_unload(int32_t device_id, void* handle) {
  Module* module = handle;
  bool entered = tw_cuda_enter(device_id) != NULL;
  if (entered) tw_cu.CtxSynchronize(); /* its kernels may still run; what has crashed is not an error of this */
  CUresult result = entered ? tw_cu.ModuleUnload(module->handle) : CUDA_SUCCESS;
  while (module->functions != NULL) {
    Function* function = module->functions;
    module->functions = function->next;
    free(function);
  }
  free(module);
  if (!entered) return -1;
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "unload a module");
}

int32_t tw_cuda_module_function(int32_t device_id, void* handle, const char* name, void** out) {
  Module* module = handle;
  if (tw_cuda_enter(device_id) == NULL) return -1;
  Function* function = calloc(1, sizeof *function);
  if (function == NULL) return tw_fail("MemoryError", "no memory for the kernel %s", name);
  function->name = tw_cuda_intern(name);
  if (function->name == NULL) {
    free(function);
    return -1;
  }
  int own_bytes = 0, registers = 0;
  CUresult result = tw_cu.ModuleGetFunction(&function->handle, module->handle, name);
  if (result == CUDA_SUCCESS) result = tw_cu.FuncGetAttribute(&own_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function->handle);
  if (result == CUDA_SUCCESS) result = tw_cu.FuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function->handle);
  if (result != CUDA_SUCCESS) {
    free(function);
    if (result == CUDA_ERROR_NOT_FOUND) return tw_fail("ValueError", "the module has no kernel %s", name);
    char doing[200];
    snprintf(doing, sizeof doing, "prepare the kernel %.150s", name);
    return tw_cuda_fail(device_id, result, doing);
  }
  function->registers = registers;
  atomic_init(&function->allowed_bytes, own_bytes < USUAL_SHARED_BYTES ? (uint32_t)(USUAL_SHARED_BYTES - own_bytes) : 0);
  tw_mutex_lock(&module->lock);
  function->next = module->functions;
  module->functions = function;
  tw_mutex_unlock(&module->lock);
  *out = function;
  return 0;
}

/* ---- launching ---- */

/* Has the kernel get more shared memory than is usual. */
static int32_t allow_shared(int32_t device_id, TwCudaDevice* device, Function* function, uint32_t num_bytes) {
  CUresult result = tw_cu.FuncSetAttribute(function->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)num_bytes);
  if (result == CUDA_SUCCESS) {
    uint32_t before = atomic_load(&function->allowed_bytes);
    while (before < num_bytes && !atomic_compare_exchange_weak(&function->allowed_bytes, &before, num_bytes)) {
    }
    return 0;
  }
  if (result != CUDA_ERROR_INVALID_VALUE) return tw_cuda_fail(device_id, result, "allow more shared memory");
  int most = 0;
  tw_cu.DeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device->device);
  return tw_fail("ValueError", "%s cannot have %u bytes of dynamic shared memory: a block of cuda(%d) has %d bytes at most", function->name,
                 (unsigned)num_bytes, (int)device_id, most);
}

static int32_t launch_failed(int32_t device_id, const Function* function, const TilewrightLaunch* how, CUresult result) {
  const int32_t *grid = how->grid, *block = how->block, *cluster = how->cluster;
  char doing[320], clusters[80] = "";
  if (cluster[0] != 0) snprintf(clusters, sizeof clusters, ", in clusters of (%d, %d, %d)", (int)cluster[0], (int)cluster[1], (int)cluster[2]);
  snprintf(doing, sizeof doing,
           "launch %.100s on a grid of (%d, %d, %d) blocks of (%d, %d, %d) threads%s, with %u bytes of dynamic shared memory and %d "
           "registers a thread",
           function->name, (int)grid[0], (int)grid[1], (int)grid[2], (int)block[0], (int)block[1], (int)block[2], clusters,
           (unsigned)how->shared_bytes, (int)function->registers);
  return tw_cuda_fail(device_id, result, doing);
}

/* A launch with attributes; a cluster of more than eight blocks is one that not every device can place. */
static CUresult launch_with_attributes(Function* function, void* const* args, const TilewrightLaunch* how, CUstream stream) {
  CUlaunchAttribute attributes[2];
  memset(attributes, 0, sizeof attributes);
  unsigned int count = 0;
  if (tw_cu.LaunchKernelEx == NULL) return CUDA_ERROR_NOT_FOUND;
  if (how->cluster[0] != 0) {
    const int32_t* cluster = how->cluster;
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count].value.clusterDim.x = (unsigned)cluster[0];
    attributes[count].value.clusterDim.y = (unsigned)cluster[1];
    attributes[count++].value.clusterDim.z = (unsigned)cluster[2];
    if ((int64_t)cluster[0] * cluster[1] * cluster[2] > 8) {
      CUresult result = tw_cu.FuncSetAttribute(function->handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  if (how->flags & TILEWRIGHT_LAUNCH_OVERLAPS) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  CUlaunchConfig config = {(unsigned)how->grid[0],  (unsigned)how->grid[1],  (unsigned)how->grid[2],
                           (unsigned)how->block[0], (unsigned)how->block[1], (unsigned)how->block[2],
                           how->shared_bytes,       stream,                  attributes,
                           count};
  return tw_cu.LaunchKernelEx(&config, function->handle, (void**)args, NULL);
}

int32_t tw_cuda_launch_with(int32_t device_id, void* handle, void* const* args, int32_t num_args, const TilewrightLaunch* how,
                            void* stream) {
  (void)num_args; /* the driver knows */
  Function* function = handle;
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  if (how->shared_bytes > atomic_load_explicit(&function->allowed_bytes, memory_order_relaxed) &&
      allow_shared(device_id, device, function, how->shared_bytes) != 0) {
    return -1;
  }
  CUstream order = tw_cuda_stream(device_id, stream);
  const int32_t *grid = how->grid, *block = how->block;
  CUresult result;
  if (how->cluster[0] != 0 || how->flags != 0) {
    result = launch_with_attributes(function, args, how, order);
  } else {
    result = tw_cu.LaunchKernel(function->handle, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], (unsigned)block[0],
                                (unsigned)block[1], (unsigned)block[2], how->shared_bytes, order, (void**)args, NULL);
  }
  if (result != CUDA_SUCCESS) return launch_failed(device_id, function, how, result);
  atomic_store_explicit(&device->last_kernel, function->name, memory_order_relaxed);
  return 0;
}

int32_t tw_cuda_launch(int32_t device_id, void* function, void* const* args, int32_t num_args, const int32_t grid[3],
                       const int32_t block[3], uint32_t shared_bytes, void* stream) {
  TilewrightLaunch how = {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, {0, 0, 0}, shared_bytes, 0};
  return tw_cuda_launch_with(device_id, function, args, num_args, &how, stream);
}

int32_t tw_cuda_kernel_needs(int32_t device_id, void* handle, int32_t threads, uint32_t shared_bytes, TilewrightKernelNeeds* out) {
  Function* function = handle;
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  if (shared_bytes > atomic_load(&function->allowed_bytes) && allow_shared(device_id, device, function, shared_bytes) != 0) return -1;
  int blocks = 0, local = 0, own = 0, most = 0;
  CUresult result = tw_cu.FuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function->handle);
  if (result == CUDA_SUCCESS) result = tw_cu.FuncGetAttribute(&own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function->handle);
  if (result == CUDA_SUCCESS) result = tw_cu.FuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function->handle);
  if (result == CUDA_SUCCESS) result = tw_cu.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function->handle, threads, shared_bytes);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "say what a kernel needs");
  *out = (TilewrightKernelNeeds){function->registers, local, own, most, blocks};
  return 0;
}
