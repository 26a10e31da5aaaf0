/* The part of NVIDIA's driver interface that this runtime uses, declared here so that building it needs no toolkit.
 * Names and numbers are the driver's own (CUDA 12). Internal to the runtime. */
#ifndef TILEWRIGHT_CUDA_DRIVER_H_
#define TILEWRIGHT_CUDA_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CUDAAPI __stdcall
#else
#define CUDAAPI
#endif

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901
};

enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106
};

enum {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};

enum {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2 };
enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

typedef struct {
  int id;
  char pad[4];
  union {
    char pad[64];
    uint64_t keep_aligned;
    struct {
      unsigned int x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
  } value;
} CUlaunchAttribute;

typedef struct {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

/* A description of a tensor for the copy engine of sm_90 and later. */
typedef struct {
  _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

/* Every function: its name here, its symbol in the library, and its arguments. Those of the second list are missing in
 * older drivers. */
#define TW_CUDA_FUNCTIONS(X)                                                                                                  \
  X(Init, "cuInit", (unsigned int flags))                                                                                     \
  X(DriverGetVersion, "cuDriverGetVersion", (int* version))                                                                   \
  X(GetErrorName, "cuGetErrorName", (CUresult error, const char** text))                                                      \
  X(GetErrorString, "cuGetErrorString", (CUresult error, const char** text))                                                  \
  X(DeviceGetCount, "cuDeviceGetCount", (int* count))                                                                         \
  X(DeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                               \
  X(DeviceGetName, "cuDeviceGetName", (char* name, int length, CUdevice device))                                              \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, CUdevice device))                                 \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))                                                 \
  X(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int* can, CUdevice device, CUdevice peer))                                 \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                               \
  X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))                                                                  \
  X(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext context))                                                                    \
  X(CtxSynchronize, "cuCtxSynchronize", (void))                                                                               \
  X(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", (CUcontext peer, unsigned int flags))                                       \
  X(MemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t* total))                                                            \
  X(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr * pointer, size_t bytes))                                                         \
  X(MemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                                                           \
  X(MemHostAlloc, "cuMemHostAlloc", (void** pointer, size_t bytes, unsigned int flags))                                       \
  X(PointerGetAttributes, "cuPointerGetAttributes", (unsigned int count, const int* attributes, void** data, CUdeviceptr pointer))                 \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))               \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                     \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))               \
  X(MemcpyPeerAsync, "cuMemcpyPeerAsync",                                                                                     \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream))          \
  X(MemsetD8Async, "cuMemsetD8Async", (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                   \
  X(StreamCreate, "cuStreamCreate", (CUstream * stream, unsigned int flags))                                                  \
  X(StreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                                   \
  X(StreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                              \
  X(StreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned int flags))                               \
  X(EventCreate, "cuEventCreate", (CUevent * event, unsigned int flags))                                                      \
  X(EventDestroy, "cuEventDestroy_v2", (CUevent event))                                                                       \
  X(EventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                                           \
  X(EventQuery, "cuEventQuery", (CUevent event))                                                                              \
  X(EventSynchronize, "cuEventSynchronize", (CUevent event))                                                                  \
  X(EventElapsedTime, "cuEventElapsedTime", (float* milliseconds, CUevent start, CUevent end))                                \
  X(ModuleLoadDataEx, "cuModuleLoadDataEx",                                                                                   \
    (CUmodule * module, const void* image, unsigned int count, int* options, void** values))                                  \
  X(ModuleUnload, "cuModuleUnload", (CUmodule module))                                                                        \
  X(ModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name))                     \
  X(FuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, CUfunction function))                                 \
  X(FuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                                  \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                 \
    (int* blocks, CUfunction function, int block_size, size_t shared_bytes))                                                  \
  X(LaunchKernel, "cuLaunchKernel",                                                                                           \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,                \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void** args, void** extra))

#define TW_CUDA_NEWER_FUNCTIONS(X)                                                                                            \
  X(LaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig* config, CUfunction function, void** args, void** extra))       \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                                               \
  X(StreamEndCapture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                                               \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec * made, CUgraph graph, unsigned long long flags))           \
  X(GraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                                          \
  X(GraphLaunch, "cuGraphLaunch", (CUgraphExec graph, CUstream stream))                                                       \
  X(GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec graph))                                                              \
  X(TensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                                           \
    (CUtensorMap * map, int type, uint32_t rank, void* base, const uint64_t* dims, const uint64_t* strides,                   \
     const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int promotion, int fill))

#define TW_CUDA_DECLARE(name, symbol, arguments) CUresult(CUDAAPI* name) arguments;
typedef struct {
  TW_CUDA_FUNCTIONS(TW_CUDA_DECLARE)
  TW_CUDA_NEWER_FUNCTIONS(TW_CUDA_DECLARE)
} TwCudaFunctions;
#undef TW_CUDA_DECLARE

/* The functions, good after a successful `tw_cuda_load` or `tw_cuda_enter`. */
extern TwCudaFunctions tw_cu;

#endif
