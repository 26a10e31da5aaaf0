/* Modules, launches, graphs and tensor maps of the simulated CUDA driver. */
#include "mock_cuda.h"

#include <stdio.h>

#define MOST_FUNCTIONS 16

struct CUfunc_st {
  const MockKernel* kernel;
  int dynamic_bytes; /* that a launch may ask for */
};

struct CUmod_st {
  struct CUfunc_st functions[MOST_FUNCTIONS];
  int count;
};

#define FUNCTION(name, ...)           \
  EXPORTED CUresult name(__VA_ARGS__); \
  CUresult name(__VA_ARGS__)

#define BEGIN                                        \
  CUresult begun;                                    \
  if (mock_injected(__func__, &begun)) return begun; \
  int device = mock_current_device();                \
  if (device < 0) return 201;                        \
  pthread_mutex_lock(&mock_lock);                    \
  if (mock_lost != CUDA_SUCCESS) return end(mock_lost);

/* The same for functions that end something: they do that also when they are made to fail. */
#define BEGIN_ENDING                                         \
  CUresult begun = CUDA_SUCCESS;                             \
  if (!mock_injected(__func__, &begun)) begun = CUDA_SUCCESS; \
  int device = mock_current_device();                        \
  if (device < 0) return 201;                                \
  pthread_mutex_lock(&mock_lock);

static CUresult end(CUresult result) {
  pthread_mutex_unlock(&mock_lock);
  return result;
}

/* ---- modules ---- */

/* True if PTX has an entry of this name. */
static bool has_entry(const char* text, const char* name) {
  for (const char* at = strstr(text, ".entry "); at != NULL; at = strstr(at + 1, ".entry ")) {
    size_t length = strcspn(at + 7, "( \n");
    if (length == strlen(name) && strncmp(at + 7, name, length) == 0) return true;
  }
  return false;
}

FUNCTION(cuModuleLoadDataEx, CUmodule* module, const void* image, unsigned int count, int* options, void** values) {
  BEGIN
  const char* text = image;
  while (text[0] == '\n' || strncmp(text, "//", 2) == 0) text += strcspn(text, "\n") + 1;
  if (strncmp(text, ".version", 8) != 0 || strstr(text, "nonsense") != NULL) {
    char* log = NULL;
    size_t size = 0;
    for (unsigned int i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (size_t)(uintptr_t)values[i];
    }
    if (log != NULL) snprintf(log, size, "ptxas application ptx input, line 1; fatal   : Parsing error near '%.8s': syntax error", text);
    return end(CUDA_ERROR_INVALID_PTX);
  }
  *module = calloc(1, sizeof **module);
  for (const MockKernel* kernel = mock_kernels; kernel->name != NULL; ++kernel) {
    if (has_entry(text, kernel->name)) {
      (*module)->functions[(*module)->count++] = (struct CUfunc_st){kernel, 49152 - kernel->own_shared_bytes};
    }
  }
  mock_counts[MODULES] += 1;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuModuleUnload, CUmodule module) {
  BEGIN_ENDING
  CUresult result = mock_run_all(device);
  free(module);
  mock_counts[MODULES] -= 1;
  return end(begun != CUDA_SUCCESS ? begun : result);
}

FUNCTION(cuModuleGetFunction, CUfunction* function, CUmodule module, const char* name) {
  BEGIN
  for (int i = 0; i < module->count; ++i) {
    if (strcmp(module->functions[i].kernel->name, name) != 0) continue;
    *function = &module->functions[i];
    return end(CUDA_SUCCESS);
  }
  return end(CUDA_ERROR_NOT_FOUND);
}

FUNCTION(cuFuncGetAttribute, int* value, int attribute, CUfunction function) {
  BEGIN
  *value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? function->kernel->own_shared_bytes : function->kernel->registers;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuFuncSetAttribute, CUfunction function, int attribute, int value) {
  BEGIN
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return end(CUDA_SUCCESS);
  if (value > 232448 - function->kernel->own_shared_bytes) return end(CUDA_ERROR_INVALID_VALUE);
  function->dynamic_bytes = value;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, CUfunction function, int block_size, size_t shared_bytes) {
  BEGIN
  size_t by_memory = 233472 / (shared_bytes + (size_t)function->kernel->own_shared_bytes + 1024);
  *blocks = (int)by_memory < 2048 / block_size ? (int)by_memory : 2048 / block_size;
  return end(CUDA_SUCCESS);
}

/* ---- launches ---- */
static CUresult launch(CUfunction function, const unsigned int grid[3], const unsigned int block[3], unsigned int cluster,
                       unsigned int shared_bytes, CUstream stream, void** args) {
  if ((uint64_t)block[0] * block[1] * block[2] > 1024 || grid[0] == 0 || shared_bytes > (unsigned int)function->dynamic_bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Operation* operation = mock_give(stream);
  operation->kernel = function->kernel;
  for (int i = 0; i < MOST_ARGS && function->kernel->sizes[i] != 0; ++i) {
    memcpy(operation->args[i], args[i], (size_t)function->kernel->sizes[i]);
  }
  memcpy(operation->grid, grid, sizeof operation->grid);
  memcpy(operation->block, block, sizeof operation->block);
  operation->shared_bytes = shared_bytes;
  operation->cluster = cluster;
  mock_counts[LAUNCHES] += 1;
  mock_counts[CLUSTER] = cluster;
  return CUDA_SUCCESS;
}

FUNCTION(cuLaunchKernel, CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
         unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void** args, void** extra) {
  (void)extra;
  BEGIN
  unsigned int grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  return end(launch(function, grid, block, 1, shared_bytes, mock_stream(device, stream), args));
}

FUNCTION(cuLaunchKernelEx, const CUlaunchConfig* config, CUfunction function, void** args, void** extra) {
  (void)extra;
  BEGIN
  unsigned int grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
  unsigned int block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
  unsigned int cluster[3] = {1, 1, 1};
  int overlaps = 0;
  for (unsigned int i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute* one = &config->attrs[i];
    if (one->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) memcpy(cluster, &one->value, sizeof cluster);
    if (one->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) overlaps = one->value.programmaticStreamSerializationAllowed;
  }
  for (int i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || grid[i] % cluster[i] != 0) return end(CUDA_ERROR_INVALID_VALUE);
  }
  unsigned int size = cluster[0] * cluster[1] * cluster[2];
  CUresult result = launch(function, grid, block, size, config->sharedMemBytes, mock_stream(device, config->hStream), args);
  mock_counts[OVERLAPS] += overlaps != 0;
  return end(result);
}

/* ---- graphs ---- */
FUNCTION(cuStreamBeginCapture_v2, CUstream stream, int mode) {
  BEGIN
  if (stream == NULL || stream->recording != NULL || mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    return end(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  stream->recording = calloc(1, sizeof *stream->recording);
  stream->recording->last = &stream->recording->first;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuStreamEndCapture, CUstream stream, CUgraph* graph) {
  BEGIN_ENDING
  (void)device;
  CUgraph recorded = stream->recording;
  if (recorded == NULL) return end(CUDA_ERROR_INVALID_VALUE);
  stream->recording = NULL;
  *graph = recorded;
  if (!recorded->broken && begun == CUDA_SUCCESS) return end(begun);
  *graph = NULL;
  mock_free_operations(recorded->first);
  free(recorded);
  return end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

FUNCTION(cuGraphInstantiateWithFlags, CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  (void)flags;
  BEGIN
  *made = calloc(1, sizeof **made);
  (*made)->first = graph->first; /* the graph is empty from now on */
  graph->first = NULL;
  graph->last = &graph->first;
  mock_counts[GRAPHS] += 1;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuGraphDestroy, CUgraph graph) {
  BEGIN_ENDING
  (void)device;
  mock_free_operations(graph->first);
  free(graph);
  return end(begun);
}

FUNCTION(cuGraphLaunch, CUgraphExec graph, CUstream stream) {
  BEGIN
  mock_give(mock_stream(device, stream))->graph = graph;
  mock_counts[GRAPH_LAUNCHES] += 1;
  return end(CUDA_SUCCESS);
}

FUNCTION(cuGraphExecDestroy, CUgraphExec graph) {
  BEGIN_ENDING
  CUresult result = mock_run_all(device);
  mock_free_operations(graph->first);
  free(graph);
  mock_counts[GRAPHS] -= 1;
  return end(begun != CUDA_SUCCESS ? begun : result);
}

/* ---- tensor maps ---- */

/* Checks what the real driver does, and writes down what it was asked for: the base, then type, rank, interleave, swizzle,
 * promotion and fill in a byte each, then dimensions and boxes. */
FUNCTION(cuTensorMapEncodeTiled, CUtensorMap* map, int type, uint32_t rank, void* base, const uint64_t* dims, const uint64_t* strides,
         const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int promotion, int fill) {
  BEGIN
  if ((uintptr_t)map % 64 != 0 || (uintptr_t)base % 16 != 0 || rank < 1 || rank > 5) return end(CUDA_ERROR_INVALID_VALUE);
  memset(map, 0, sizeof *map);
  map->opaque[0] = (uint64_t)(uintptr_t)base;
  map->opaque[1] = (uint64_t)type | (uint64_t)rank << 8 | (uint64_t)interleave << 16 | (uint64_t)swizzle << 24 |
                   (uint64_t)promotion << 32 | (uint64_t)fill << 40;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] == 0 || dims[i] > (uint64_t)1 << 32 || box[i] == 0 || box[i] > 256 || element_strides[i] == 0 || element_strides[i] > 8 ||
        (i + 1 < rank && strides[i] % 16 != 0)) {
      return end(CUDA_ERROR_INVALID_VALUE);
    }
    map->opaque[2 + i] = dims[i];
    map->opaque[7 + i] = box[i] | (uint64_t)element_strides[i] << 32;
    if (i + 1 < rank) map->opaque[12 + i] = strides[i];
  }
  mock_counts[ENCODED] += 1;
  return end(CUDA_SUCCESS);
}
