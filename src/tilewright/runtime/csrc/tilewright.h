/* Tilewright's C runtime: everything a host program or generated code may call.
 *
 * Conventions. A function that can fail returns 0, or -1 after setting the calling thread's error (see "Errors").
 * Compiled functions have the published tvm-ffi calling convention, `TilewrightFunction` below, under the symbol
 * `__tvm_ffi_<name>`. Objects carry the tvm-ffi header, so a tensor or function made here can be handed to any host
 * that speaks that convention, and the reverse. All functions may be called from any thread.
 */
#ifndef TILEWRIGHT_H_
#define TILEWRIGHT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An artefact that carries its own copy of the runtime hides every name, so that two of them never collide. */
#if defined(TILEWRIGHT_STATIC) || (defined(TILEWRIGHT_EMBEDDED) && defined(_WIN32))
#define TILEWRIGHT_API
#elif defined(TILEWRIGHT_EMBEDDED)
#define TILEWRIGHT_API __attribute__((visibility("hidden")))
#elif defined(_WIN32)
#define TILEWRIGHT_API __declspec(dllexport)
#else
#define TILEWRIGHT_API __attribute__((visibility("default")))
#endif

/* ---- DLPack, as published; skipped where the program already includes dlpack.h ---------------------------------- */
#ifndef DLPACK_MAJOR_VERSION
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLExtDev = 12,
  kDLWebGPU = 15,
  kDLHexagon = 16
} DLDeviceType;

typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL means compact and row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY ((uint64_t)1)
#define DLPACK_FLAG_BITMASK_IS_COPIED ((uint64_t)2)

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

/* ---- Values and objects: the tvm-ffi layouts ---------------------------------------------------------------------- */
enum {
  TILEWRIGHT_NONE = 0,
  TILEWRIGHT_INT = 1,
  TILEWRIGHT_BOOL = 2,
  TILEWRIGHT_FLOAT = 3,
  TILEWRIGHT_POINTER = 4,
  TILEWRIGHT_DATA_TYPE = 5,
  TILEWRIGHT_DEVICE = 6,
  TILEWRIGHT_DLTENSOR = 7,
  TILEWRIGHT_C_STRING = 8,
  TILEWRIGHT_BYTE_ARRAY = 9,
  TILEWRIGHT_SMALL_STRING = 11,
  TILEWRIGHT_SMALL_BYTES = 12,
  TILEWRIGHT_FIRST_OBJECT = 64,
  TILEWRIGHT_STRING = 65,
  TILEWRIGHT_BYTES = 66,
  TILEWRIGHT_FUNCTION = 68,
  TILEWRIGHT_TENSOR = 70,
  TILEWRIGHT_PYTHON = 74,
  /* only of this runtime: far above the numbers that other hosts give out */
  TILEWRIGHT_DATA = 0x54570001,
  TILEWRIGHT_REFERENCE = 0x54570002,
  TILEWRIGHT_STORAGE = 0x54570003
};

/* In the padding of a tagged tensor: its memory must not be written. Compiled functions refuse it where they write. */
#define TILEWRIGHT_READ_ONLY ((uint32_t)1)

/* Header of every heap object. Low 32 bits of the count: strong references; high 32: weak ones (one for all strong). */
typedef struct {
  uint64_t reference_counts;
  int32_t type_index;
  uint32_t padding;
  union {
    void (*deleter)(void* self, int flags);
    int64_t keep_aligned;
  };
} TilewrightObject;

typedef struct {
  int32_t type_index;
  uint32_t zero_padding; /* the length of a small string; TILEWRIGHT_READ_ONLY of a tensor; zero otherwise */
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
    const char* v_c_str;
    TilewrightObject* v_obj;
    DLDataType v_dtype;
    DLDevice v_device;
    char v_bytes[8];
    uint64_t v_uint64;
  };
} TVMFFIAny;

typedef struct {
  const char* data;
  size_t size;
} TilewrightByteArray;

typedef int32_t (*TilewrightFunction)(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

TILEWRIGHT_API void tilewright_object_retain(TilewrightObject* object);
TILEWRIGHT_API void tilewright_object_release(TilewrightObject* object); /* NULL is fine */

/* Releases the object a result may hold, and makes it None. */
TILEWRIGHT_API void tilewright_any_release(TVMFFIAny* value);

/* Owned values for results. The bytes are copied and a zero byte is put after them. */
TILEWRIGHT_API int32_t tilewright_make_string(const char* data, size_t size, TVMFFIAny* out);
TILEWRIGHT_API int32_t tilewright_make_bytes(const char* data, size_t size, TVMFFIAny* out);

/* The characters of any kind of string or bytes value; fails for other values. */
TILEWRIGHT_API int32_t tilewright_get_bytes(const TVMFFIAny* value, const char** data, size_t* size);

/* An object that stands for a value of the host language; `release(handle)` runs when the last reference goes. */
TILEWRIGHT_API int32_t tilewright_make_opaque(void* handle, void (*release)(void*), TVMFFIAny* out);
TILEWRIGHT_API void* tilewright_opaque_handle(const TilewrightObject* object);

/* ---- Errors: one slot a thread ------------------------------------------------------------------------------------- */
/* `kind` names the class of error ("ValueError", "MemoryError" ...). Both strings are copied. */
TILEWRIGHT_API void tilewright_set_error(const char* kind, const char* message);

/* The same, for checks of generated code: `{0}`, `{1}` ... in the format are replaced by the values. `{0:t}` prints a data
 * type packed as code | bits << 8 | lanes << 16, `{0:k}` the name of a device type, `{0:a}` the type of an argument. */
TILEWRIGHT_API void tilewright_set_error_format(const char* kind, const char* format, const int64_t* values,
                                                int32_t num_values);

/* For generated code: 0 if the arguments are as a table says, else -1 with an error. The table has the number of arguments,
 * the number of tensors among them, and for each tensor: its index, whether it is written, its data type (packed as above),
 * kind of device, alignment, number of dimensions, and its dimensions, -1 where any size will do. All tensors must be compact
 * and on one device. The names of the function and of each tensor stand in lines. */
TILEWRIGHT_API int32_t tilewright_check_tensors(const TVMFFIAny* args, int32_t num_args, const int64_t* table,
                                                const char* names);

/* A number that a host language attaches to the present error to find its own exception again. Zero means none. */
TILEWRIGHT_API void tilewright_set_error_payload(uint64_t payload);

/* NULL when no error is set. The strings live until the next error or `tilewright_clear_error` of this thread. */
TILEWRIGHT_API const char* tilewright_error_kind(void);
TILEWRIGHT_API const char* tilewright_error_message(void);
TILEWRIGHT_API uint64_t tilewright_error_payload(void);
TILEWRIGHT_API void tilewright_clear_error(void);

/* ---- Functions and the global registry ------------------------------------------------------------------------------ */
/* `call` is called with `self`; `release(owner)`, which may be NULL, runs when the last reference goes. On success `*out`
 * holds one reference. */
TILEWRIGHT_API int32_t tilewright_function_create(TilewrightFunction call, void* self, void* owner,
                                                  void (*release)(void* owner), TilewrightObject** out);
TILEWRIGHT_API int32_t tilewright_function_call(TilewrightObject* function, const TVMFFIAny* args, int32_t num_args,
                                                TVMFFIAny* result);

/* Takes its own reference. Fails for a name already taken unless `override` is set. */
TILEWRIGHT_API int32_t tilewright_register_function(const char* name, TilewrightObject* function, int32_t override);
TILEWRIGHT_API TilewrightObject* tilewright_get_function(const char* name); /* a new reference, or NULL; sets no error */
TILEWRIGHT_API int32_t tilewright_remove_function(const char* name);

/* Newline-separated names, to be given back to `tilewright_free_text`; NULL with an error when out of memory. */
TILEWRIGHT_API char* tilewright_list_functions(void);
TILEWRIGHT_API void tilewright_free_text(char* text);

/* Calls the registered function `name`. `*cache` (initially NULL) remembers where it is registered. `result` must be
 * None on entry; an object in it belongs to the caller afterwards. */
TILEWRIGHT_API int32_t tilewright_call_packed(const char* name, void** cache, const TVMFFIAny* args, int32_t num_args,
                                              TVMFFIAny* result);

/* Has whoever calls through this slot (the `cache` of `tilewright_call_packed`) call a function, whatever is registered
 * under the name. The slot holds a reference. NULL: the registry decides again. Generated code has one slot for each name
 * and library, as the symbol `__tilewright_packed_<name>`; a slot that is bound has to be unbound before its library is
 * unloaded. */
TILEWRIGHT_API int32_t tilewright_bind_function(void** slot, TilewrightObject* function);

/* Functions that are linked into the program itself, found by `tilewright_system_symbol`. Generated constructors call the
 * first; `name` must live as long as the program. */
TILEWRIGHT_API int32_t tilewright_register_system_symbol(const char* name, void* address);
TILEWRIGHT_API void* tilewright_system_symbol(const char* name); /* NULL when there is none */

/* ---- Devices: a table of functions each ----------------------------------------------------------------------------- */
/* What can be asked of a device: the numbers of TVM 0.8, then our own. */
enum {
  TILEWRIGHT_ATTRIBUTE_EXISTS = 0,                      /* integer: 0 or 1 */
  TILEWRIGHT_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,       /* integer */
  TILEWRIGHT_ATTRIBUTE_WARP_SIZE = 2,                   /* integer */
  TILEWRIGHT_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 3, /* integer, bytes */
  TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION = 4,             /* text, such as "9.0" */
  TILEWRIGHT_ATTRIBUTE_DEVICE_NAME = 5,                 /* text */
  TILEWRIGHT_ATTRIBUTE_MAX_CLOCK_RATE = 6,              /* integer, kHz */
  TILEWRIGHT_ATTRIBUTE_MULTI_PROCESSOR_COUNT = 7,       /* integer */
  TILEWRIGHT_ATTRIBUTE_MAX_THREAD_DIMENSIONS = 8,       /* text, such as "[1024, 1024, 64]" */
  TILEWRIGHT_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 9,     /* integer, of 32 bits each */
  TILEWRIGHT_ATTRIBUTE_API_VERSION = 11,                /* integer or text */
  TILEWRIGHT_ATTRIBUTE_DRIVER_VERSION = 12,             /* integer or text */
  TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY = 13,               /* integer, bytes */
  TILEWRIGHT_ATTRIBUTE_FREE_MEMORY = 14,                /* integer, bytes */
  TILEWRIGHT_ATTRIBUTE_L2_BYTES = 15,                   /* integer: the cache that all multiprocessors share */
  TILEWRIGHT_ATTRIBUTE_MAX_DYNAMIC_SHARED_MEMORY = 16,  /* integer, bytes of a block that asks for them at its launch */
  TILEWRIGHT_ATTRIBUTE_SHARED_MEMORY_PER_MULTI_PROCESSOR = 17, /* integer, bytes */
  TILEWRIGHT_ATTRIBUTE_REGISTERS_PER_MULTI_PROCESSOR = 18,     /* integer, of 32 bits each */
  TILEWRIGHT_ATTRIBUTE_THREADS_PER_MULTI_PROCESSOR = 19,       /* integer */
  TILEWRIGHT_ATTRIBUTE_BLOCKS_PER_MULTI_PROCESSOR = 20,        /* integer */
  TILEWRIGHT_ATTRIBUTE_MEMORY_CLOCK_RATE = 21,                 /* integer, kHz */
  TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS = 22                    /* integer */
};

enum {
  TILEWRIGHT_DEVICE_HOST_READS = 1,   /* host code may read and write this memory directly */
  TILEWRIGHT_DEVICE_ASYNCHRONOUS = 2, /* copies and launches may return before they are done: wait with `stream_sync` */
  TILEWRIGHT_DEVICE_SETTLES_HOST = 4, /* but a copy has read, or written, the memory of the host when it returns */
  TILEWRIGHT_DEVICE_SHARES_STREAMS = 8 /* streams have the numbers that DLPack exchanges: see `stream_current`, `stream_wait` */
};

/* How a kernel is launched. */
typedef struct {
  int32_t grid[3], block[3];
  int32_t cluster[3]; /* blocks of the grid that are placed together, in each dimension; 0: the kernel's own clusters, if any */
  uint32_t shared_bytes;
  uint32_t flags;
} TilewrightLaunch;

enum {
  TILEWRIGHT_LAUNCH_OVERLAPS = 1 /* may begin before the kernel before it in the stream has ended, for which it waits itself */
};

/* What a kernel needs of a device, and how many of its blocks fit on a multiprocessor at a time. */
typedef struct {
  int32_t registers;    /* of a thread */
  int32_t local_bytes;  /* memory of a thread that did not fit into registers */
  int32_t shared_bytes; /* of a block, besides what a launch asks for */
  int32_t max_threads;  /* of a block */
  int32_t blocks_per_multi_processor;
} TilewrightKernelNeeds;

/* A tensor as a device's copy engine is told of it. The innermost dimension comes first. */
#define TILEWRIGHT_TENSOR_MAP_BYTES 128
#define TILEWRIGHT_TENSOR_MAP_DIMENSIONS 5
typedef struct {
  void* base;
  DLDataType dtype;
  int32_t rank;
  uint64_t dims[TILEWRIGHT_TENSOR_MAP_DIMENSIONS];
  uint64_t strides[TILEWRIGHT_TENSOR_MAP_DIMENSIONS]; /* bytes, of each dimension but the innermost: the first is of dimension 1 */
  uint32_t box[TILEWRIGHT_TENSOR_MAP_DIMENSIONS];     /* elements that one copy moves */
  uint32_t element_strides[TILEWRIGHT_TENSOR_MAP_DIMENSIONS];
  int32_t interleave, swizzle, promotion; /* bytes; 0: none */
  int32_t fills_nan;                      /* what a copy finds outside of the tensor: zeros or, if not 0, NaN */
} TilewrightTensor;

/* Everything the runtime knows of a kind of device; docs/new-device.md says what each member has to do. A member may be
 * NULL: asking for it is then an error that names the device and what it lacks. Functions return 0, or -1 after
 * `tilewright_set_error`; all may be called from any thread. A stream of NULL is the calling thread's current one. */
typedef struct {
  uint32_t size; /* sizeof(TilewrightDeviceTable) of whoever fills it: members behind that count as NULL */
  uint32_t flags;
  const char* name; /* of the kind, for people and messages: "cuda" */
  int32_t (*count)(void);
  int32_t (*attribute)(int32_t device_id, int32_t attribute, TVMFFIAny* out); /* None: not known */

  int32_t (*alloc)(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out);
  int32_t (*free)(int32_t device_id, void* pointer);

  /* Whether `copy` can go from one device to another. NULL: within one device, and between it and host memory. */
  int32_t (*can_copy)(DLDevice from, DLDevice to);
  int32_t (*copy)(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                  uint64_t num_bytes, void* stream);

  int32_t (*stream_create)(int32_t device_id, void** out);
  int32_t (*stream_free)(int32_t device_id, void* stream);
  int32_t (*stream_set)(int32_t device_id, void* stream); /* the calling thread's current stream */
  int32_t (*stream_sync)(int32_t device_id, void* stream);

  int32_t (*event_create)(int32_t device_id, void** out);
  int32_t (*event_free)(int32_t device_id, void* event);
  int32_t (*event_record)(int32_t device_id, void* event, void* stream);
  int32_t (*event_sync)(int32_t device_id, void* event);
  int32_t (*event_elapsed)(int32_t device_id, void* start, void* end, double* milliseconds);

  int32_t (*module_load)(int32_t device_id, const void* image, size_t size, void** out);
  int32_t (*module_unload)(int32_t device_id, void* module);
  int32_t (*module_function)(int32_t device_id, void* module, const char* name, void** out);

  /* `args[i]` points to the value of argument i; the values are copied before this returns. */
  int32_t (*launch)(int32_t device_id, void* function, void* const* args, int32_t num_args, const int32_t grid[3], const int32_t block[3],
                    uint32_t shared_bytes, void* stream);

  /* Fills memory with zeros, in the order of the stream. NULL: zeros are copied from the host. */
  int32_t (*clear)(int32_t device_id, void* pointer, uint64_t num_bytes, void* stream);

  /* The calling thread's current stream, as other libraries know it; and an order between two streams of a device: what
   * `stream` is given from now on waits for what `other` was given so far. */
  int32_t (*stream_current)(int32_t device_id, void** out);
  int32_t (*stream_wait)(int32_t device_id, void* stream, void* other);

  /* `launch` with all that can be said. Asked only for kernels that have clusters or flags. */
  int32_t (*launch_with)(int32_t device_id, void* function, void* const* args, int32_t num_args, const TilewrightLaunch* how, void* stream);

  /* Describes a tensor to the device's copy engine, in TILEWRIGHT_TENSOR_MAP_BYTES that are aligned to 64. */
  int32_t (*tensor_map)(int32_t device_id, const TilewrightTensor* tensor, void* out);

  /* Between these two, what the calling thread gives to the device is not done but recorded. The recording can be launched
   * any number of times, and does the same on the same memory. Memory that is allocated and freed meanwhile is the
   * recording's. Whatever cannot be recorded fails. */
  int32_t (*record_begin)(int32_t device_id);
  int32_t (*record_end)(int32_t device_id, void** out); /* NULL: the recording is thrown away */
  int32_t (*recording_launch)(int32_t device_id, void* recording, void* stream);
  int32_t (*recording_free)(int32_t device_id, void* recording);

  /* What a kernel needs, in blocks of so many threads that ask for so much shared memory. */
  int32_t (*kernel_needs)(int32_t device_id, void* function, int32_t threads, uint32_t shared_bytes, TilewrightKernelNeeds* out);
} TilewrightDeviceTable;

/* Makes a kind of device known, under DLPack's number for it, for the rest of the process. The table is copied. Fails for a
 * number that is taken. */
TILEWRIGHT_API int32_t tilewright_device_register(int32_t device_type, const TilewrightDeviceTable* table);

/* The table of a kind; NULL, without an error, where the runtime has no driver for it. Read its `size` before a member
 * that this version of the header added. */
TILEWRIGHT_API const TilewrightDeviceTable* tilewright_device_table(int32_t device_type);

/* The flags of a kind; 0 where the runtime has no driver for it. */
TILEWRIGHT_API uint32_t tilewright_device_flags(int32_t device_type);

/* The members of a device's table, and a clear error where there is no driver or no such member. */
TILEWRIGHT_API int32_t tilewright_device_require(DLDevice device); /* an error unless there is a driver */
TILEWRIGHT_API int32_t tilewright_device_attribute(DLDevice device, int32_t attribute, TVMFFIAny* out);
TILEWRIGHT_API int32_t tilewright_device_alloc(DLDevice device, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out);
TILEWRIGHT_API int32_t tilewright_device_free(DLDevice device, void* pointer);

/* Copies bytes between any two devices, through host memory where neither can do it. Host memory may be used as soon as
 * this returns; a copy between devices is in the order of the stream. */
TILEWRIGHT_API int32_t tilewright_device_copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset,
                                              DLDevice to_device, uint64_t num_bytes, void* stream);
TILEWRIGHT_API int32_t tilewright_stream_create(DLDevice device, void** out);
TILEWRIGHT_API int32_t tilewright_stream_free(DLDevice device, void* stream);
TILEWRIGHT_API int32_t tilewright_stream_set(DLDevice device, void* stream);
TILEWRIGHT_API int32_t tilewright_stream_sync(DLDevice device, void* stream);
TILEWRIGHT_API int32_t tilewright_stream_current(DLDevice device, void** out);
TILEWRIGHT_API int32_t tilewright_stream_wait(DLDevice device, void* stream, void* other);
TILEWRIGHT_API int32_t tilewright_event_create(DLDevice device, void** out);
TILEWRIGHT_API int32_t tilewright_event_free(DLDevice device, void* event);
TILEWRIGHT_API int32_t tilewright_event_record(DLDevice device, void* event, void* stream);
TILEWRIGHT_API int32_t tilewright_event_sync(DLDevice device, void* event);
TILEWRIGHT_API int32_t tilewright_event_elapsed(DLDevice device, void* start, void* end, double* milliseconds);
TILEWRIGHT_API int32_t tilewright_module_load(DLDevice device, const void* image, size_t size, void** out);
TILEWRIGHT_API int32_t tilewright_module_unload(DLDevice device, void* module);
TILEWRIGHT_API int32_t tilewright_module_function(DLDevice device, void* module, const char* name, void** out);
TILEWRIGHT_API int32_t tilewright_launch(DLDevice device, void* function, void* const* args, int32_t num_args, const int32_t grid[3],
                                         const int32_t block[3], uint32_t shared_bytes, void* stream);
TILEWRIGHT_API int32_t tilewright_launch_with(DLDevice device, void* function, void* const* args, int32_t num_args,
                                              const TilewrightLaunch* how, void* stream);
TILEWRIGHT_API int32_t tilewright_tensor_map(DLDevice device, const TilewrightTensor* tensor, void* out);
TILEWRIGHT_API int32_t tilewright_record_begin(DLDevice device);
TILEWRIGHT_API int32_t tilewright_record_end(DLDevice device, void** out);
TILEWRIGHT_API int32_t tilewright_recording_launch(DLDevice device, void* recording, void* stream);
TILEWRIGHT_API int32_t tilewright_recording_free(DLDevice device, void* recording);
TILEWRIGHT_API int32_t tilewright_kernel_needs(DLDevice device, void* function, int32_t threads, uint32_t shared_bytes,
                                               TilewrightKernelNeeds* out);

/* The device of a kind that the calling thread's kernels are launched on; 0 until set. Generated code sets the device of its
 * arguments, as the global function `__tvm_set_device(device_type, device_id)`. */
TILEWRIGHT_API int32_t tilewright_set_device(DLDevice device);
TILEWRIGHT_API int32_t tilewright_current_device(int32_t device_type);

/* ---- Modules of kernels ----------------------------------------------------------------------------------------------- */
/* A number that is known when a kernel is launched: a factor, times the values of integer arguments. */
#define TILEWRIGHT_SIZE_ARGUMENTS 4
typedef struct {
  int64_t factor;
  int32_t arguments[TILEWRIGHT_SIZE_ARGUMENTS]; /* positions; -1: none */
} TilewrightSize;

/* A parameter of a kernel that its callers do not pass: a tensor map, made from the arguments at each launch. */
typedef struct {
  int32_t position; /* among the kernel's parameters */
  int32_t base;     /* the argument that points to the tensor */
  int64_t offset;   /* bytes from there to the first element */
  TilewrightSize dims[TILEWRIGHT_TENSOR_MAP_DIMENSIONS], strides[TILEWRIGHT_TENSOR_MAP_DIMENSIONS];
  TilewrightTensor tensor; /* all else */
} TilewrightTensorMap;

/* How a kernel is called: its arguments, then the extents of its thread axes and, if it wants it, the bytes of its dynamic
 * shared memory. */
typedef struct {
  const char* name;
  const DLDataType* arg_types; /* kDLOpaqueHandle for a pointer; integers, bool, float32 and float64 */
  int32_t num_args;
  int32_t num_axes;
  const char* const* axes; /* "blockIdx.x" to "threadIdx.z" and "clusterCtaIdx.x" to ".z", in the order of their extents */
  int32_t has_shared_bytes;
  uint32_t launch_flags; /* TILEWRIGHT_LAUNCH_* */
  int32_t num_tensor_maps;
  const TilewrightTensorMap* tensor_maps; /* by rising position */
} TilewrightKernel;

typedef struct TilewrightDeviceModule TilewrightDeviceModule;

/* Kernels for a kind of device, from an image in the form that its driver takes. Everything is copied, but for an image of
 * size 0, which is passed on to the driver as it is. The image is loaded on a device when a kernel is first launched on it.
 * On success `*out` holds one reference. */
TILEWRIGHT_API int32_t tilewright_device_module_create(int32_t device_type, const void* image, size_t size,
                                                       const TilewrightKernel* kernels, int32_t num_kernels,
                                                       TilewrightDeviceModule** out);
TILEWRIGHT_API void tilewright_device_module_release(TilewrightDeviceModule* module); /* NULL is fine */

/* A kernel as a function that launches it on the calling thread's device and stream. It takes pointers, or tensors of that
 * device, for pointers. A new reference, which keeps the module alive. */
TILEWRIGHT_API int32_t tilewright_device_module_function(TilewrightDeviceModule* module, const char* name, TilewrightObject** out);

/* What a kernel needs on the calling thread's device; see `kernel_needs`. */
TILEWRIGHT_API int32_t tilewright_device_module_needs(TilewrightDeviceModule* module, const char* name, int32_t threads,
                                                      uint32_t shared_bytes, TilewrightKernelNeeds* out);

/* ---- Tensors -------------------------------------------------------------------------------------------------------- */
/* A tensor object holds its DLTensor right after the header. New storage is aligned to 64 bytes, not initialised. */
TILEWRIGHT_API int32_t tilewright_tensor_create(const int64_t* shape, int32_t ndim, DLDataType dtype, DLDevice device,
                                                TilewrightObject** out);
TILEWRIGHT_API DLTensor* tilewright_tensor_dltensor(TilewrightObject* tensor);

/* A tensor over memory that somebody else owns: `release(owner)` runs when the last reference goes (may be NULL).
 * `strides` may be NULL: compact. */
TILEWRIGHT_API int32_t tilewright_tensor_wrap(const DLTensor* description, void* owner, void (*release)(void* owner),
                                              TilewrightObject** out);

/* Takes over the managed tensor, on success only. */
TILEWRIGHT_API int32_t tilewright_tensor_from_dlpack(DLManagedTensor* from, TilewrightObject** out);
TILEWRIGHT_API int32_t tilewright_tensor_from_dlpack_versioned(DLManagedTensorVersioned* from, TilewrightObject** out);

/* The managed tensor shares the memory and keeps the tensor alive. NULL with an error when out of memory. */
TILEWRIGHT_API DLManagedTensor* tilewright_tensor_to_dlpack(TilewrightObject* tensor);
TILEWRIGHT_API DLManagedTensorVersioned* tilewright_tensor_to_dlpack_versioned(TilewrightObject* tensor);

/* For Python: the destructor of a capsule that holds a managed tensor which nobody has consumed, given the addresses of
 * CPython's PyCapsule_IsValid and PyCapsule_GetPointer. */
TILEWRIGHT_API void* tilewright_capsule_destructor(void* capsule_is_valid, void* capsule_get_pointer);

/* Copies elements between tensors of one shape and data type, whatever their devices and strides. They must not overlap. */
TILEWRIGHT_API int32_t tilewright_tensor_copy(const DLTensor* from, const DLTensor* to);

/* The same to and from memory of the host that has all the elements in a row. */
TILEWRIGHT_API int32_t tilewright_tensor_read(const DLTensor* from, void* memory);
TILEWRIGHT_API int32_t tilewright_tensor_write(const DLTensor* to, const void* memory);

/* ---- Memory for generated code ---------------------------------------------------------------------------------------- */
/* 64-byte aligned scratch memory: from the calling thread's pool on the host, from the driver on other devices; NULL with
 * an error on failure. */
TILEWRIGHT_API void* tilewright_workspace_alloc(int32_t device_type, int32_t device_id, uint64_t num_bytes);
TILEWRIGHT_API int32_t tilewright_workspace_free(int32_t device_type, int32_t device_id, void* pointer);

/* ---- Threads ------------------------------------------------------------------------------------------------------------ */
typedef int32_t (*TilewrightTask)(int32_t task_id, int32_t num_tasks, void* closure);

/* Runs `body` once for each task id in [0, num_tasks) and returns when all are done. Zero tasks means one a thread;
 * a negative number is that of a loop's iterations, for the pool to choose how many tasks they become.
 * Tasks may share a thread: a task must never wait for another. The first non-zero return is the result, and the error
 * of that task becomes the caller's; tasks not begun by then are left out. Inside a task, regions run in place. */
TILEWRIGHT_API int32_t tilewright_parallel_launch(TilewrightTask body, void* closure, int32_t num_tasks);

/* Threads a region uses, the caller included. By default TILEWRIGHT_NUM_THREADS (or TVM_NUM_THREADS), else the physical
 * cores that the process may use within its affinity mask and its control group's quota. */
TILEWRIGHT_API int32_t tilewright_num_threads(void);

/* affinity_mode 0: any allowed core; 1: only the fastest kind; -1: only the slowest kind. num_threads 0: the default. */
TILEWRIGHT_API int32_t tilewright_config_threads(int32_t affinity_mode, int32_t num_threads);

/* ---- The machine ---------------------------------------------------------------------------------------------------------- */
/* 1: this CPU and system support the LLVM feature; 0: they do not; -1: the name is not known to this library. */
TILEWRIGHT_API int32_t tilewright_cpu_has_feature(const char* name);

/* ---- Measurement ------------------------------------------------------------------------------------------------------------ */
/* One unmeasured call, then `repeat` results: the mean seconds of `number` calls in a row, the number raised until a
 * repeat lasts `min_repeat_ms`. `prepare` (may be NULL) is called with the same arguments before each repeat. */
TILEWRIGHT_API int32_t tilewright_time_function(TilewrightFunction call, void* self, const TVMFFIAny* args,
                                                int32_t num_args, int32_t number, int32_t repeat, int32_t min_repeat_ms,
                                                TilewrightObject* prepare, double* seconds);

/* The same for a function that gives work to a device: by the device's events where it has them, else by the host's clock
 * until the device has done the work. */
TILEWRIGHT_API int32_t tilewright_time_function_on(DLDevice device, TilewrightFunction call, void* self, const TVMFFIAny* args,
                                                   int32_t num_args, int32_t number, int32_t repeat, int32_t min_repeat_ms,
                                                   TilewrightObject* prepare, double* seconds);

/* Calls a function up to `number` times in a row, and stops soon after `most_nanoseconds`, so that a caller may look at
 * other things in between. `*piece` calls are made between two looks at the clock; it is kept from call to call. */
TILEWRIGHT_API int32_t tilewright_time_some(DLDevice device, TilewrightFunction call, void* self, const TVMFFIAny* args, int32_t num_args,
                                            int64_t number, int64_t most_nanoseconds, int64_t* piece, int64_t* done,
                                            int64_t* nanoseconds);

/* A log of calls. `watch` gives a function that calls another one and logs each call under a number; it keeps both alive.
 * One thread at a time may call the functions of a log. The words of a call are its number, when it began after the last
 * `clear` and how long it took in nanoseconds, how many tensors it was given, and for each of these the code, bits and
 * lanes of its type, its number of dimensions, and its shape. They are valid until the next call. */
typedef struct TilewrightCallLog TilewrightCallLog;
TILEWRIGHT_API int32_t tilewright_call_log_create(TilewrightCallLog** out);
TILEWRIGHT_API void tilewright_call_log_release(TilewrightCallLog* log); /* NULL is fine */
TILEWRIGHT_API int32_t tilewright_call_log_watch(TilewrightCallLog* log, TilewrightObject* function, int64_t number,
                                                 TilewrightObject** out);
TILEWRIGHT_API void tilewright_call_log_clear(TilewrightCallLog* log);
TILEWRIGHT_API const int64_t* tilewright_call_log_words(const TilewrightCallLog* log, size_t* count);

/* ---- Graph executor --------------------------------------------------------------------------------------------------------- */
typedef struct TilewrightGraph TilewrightGraph;

/* A new reference to the compiled function of a name, or NULL. Called while a graph is created, never later. */
typedef TilewrightObject* (*TilewrightFind)(void* context, const char* name);

/* Reads a graph in the JSON form of TVM's graph executor and plans its memory: one arena a device for all intermediate
 * tensors. A tensor is on the device that the graph says, by its kind, among `devices`; where the graph says nothing, on
 * the first of them. Without devices, all are on the host. On success `*out` holds one reference. */
TILEWRIGHT_API int32_t tilewright_graph_create_on(const char* json, size_t size, TilewrightFind find, void* context,
                                                  const DLDevice* devices, int32_t num_devices, TilewrightGraph** out);
TILEWRIGHT_API int32_t tilewright_graph_create(const char* json, size_t size, TilewrightFind find, void* context,
                                               TilewrightGraph** out);
TILEWRIGHT_API void tilewright_graph_retain(TilewrightGraph* graph);
TILEWRIGHT_API void tilewright_graph_release(TilewrightGraph* graph);

TILEWRIGHT_API int32_t tilewright_graph_num_inputs(const TilewrightGraph* graph);
TILEWRIGHT_API int32_t tilewright_graph_num_outputs(const TilewrightGraph* graph);
TILEWRIGHT_API int32_t tilewright_graph_num_nodes(const TilewrightGraph* graph);
TILEWRIGHT_API uint64_t tilewright_graph_arena_bytes(const TilewrightGraph* graph);

/* -1 for a name that is not an input. */
TILEWRIGHT_API int32_t tilewright_graph_input_index(const TilewrightGraph* graph, const char* name);
TILEWRIGHT_API const char* tilewright_graph_input_name(const TilewrightGraph* graph, int32_t index);
TILEWRIGHT_API int32_t tilewright_graph_input_device(const TilewrightGraph* graph, int32_t index, DLDevice* out);

/* By the model's names, or output_0 and so on for a graph without names. -1 for a name that is not an output. */
TILEWRIGHT_API int32_t tilewright_graph_output_index(const TilewrightGraph* graph, const char* name);
TILEWRIGHT_API const char* tilewright_graph_output_name(const TilewrightGraph* graph, int32_t index);

TILEWRIGHT_API const char* tilewright_graph_node_name(const TilewrightGraph* graph, int32_t node);
TILEWRIGHT_API int32_t tilewright_graph_node_index(const TilewrightGraph* graph, const char* name); /* -1: none */

/* Tensors that share the graph's memory and keep the graph alive; a new reference each. A run overwrites outputs. */
TILEWRIGHT_API int32_t tilewright_graph_input(TilewrightGraph* graph, int32_t index, TilewrightObject** out);
TILEWRIGHT_API int32_t tilewright_graph_output(TilewrightGraph* graph, int32_t index, TilewrightObject** out);
TILEWRIGHT_API int32_t tilewright_graph_node_output(TilewrightGraph* graph, int32_t node, int32_t index, TilewrightObject** out);

/* Copies a tensor into an input. */
TILEWRIGHT_API int32_t tilewright_graph_set_input(TilewrightGraph* graph, int32_t index, const DLTensor* from);

/* Has an input read from memory of its device that the caller keeps alive and aligned to 64 bytes, until another is set. Where
 * an output takes the memory of the input, a run writes there. */
TILEWRIGHT_API int32_t tilewright_graph_set_input_zero_copy(TilewrightGraph* graph, int32_t index, const DLTensor* from);

/* The same with a tensor object, of which the graph keeps a reference for as long as it reads from it. */
TILEWRIGHT_API int32_t tilewright_graph_share_input(TilewrightGraph* graph, int32_t index, TilewrightObject* tensor);

/* 1 if the graph was built so that an output takes the memory of the input: after a run the input has the output's value, and
 * need not be set again. */
TILEWRIGHT_API int32_t tilewright_graph_updates_input(TilewrightGraph* graph, int32_t index);

/* 1 if the input is a parameter that the library has as a constant (the target's "-link-params"). It need not be set, and its
 * memory is read-only; a value that is set takes its place. */
TILEWRIGHT_API int32_t tilewright_graph_input_is_linked(TilewrightGraph* graph, int32_t index);

/* Copies parameters, in the form of TVM's `save_param_dict`, into the inputs of their names; names that are no input are
 * left out. Sharing takes them from another graph instead, without a copy. */
TILEWRIGHT_API int32_t tilewright_graph_load_params(TilewrightGraph* graph, const char* data, size_t size);
TILEWRIGHT_API int32_t tilewright_graph_share_params(TilewrightGraph* graph, TilewrightGraph* other, const char* data, size_t size);

/* A run is over when it returns where the host reads results in place. Devices with memory of their own may still be at
 * work: copying from them waits, and so does `tilewright_stream_sync`. */
TILEWRIGHT_API int32_t tilewright_graph_run(TilewrightGraph* graph);
TILEWRIGHT_API int32_t tilewright_graph_run_until(TilewrightGraph* graph, int32_t node); /* that node included */
TILEWRIGHT_API int32_t tilewright_graph_run_node(TilewrightGraph* graph, int32_t node);  /* only that node */

/* Sets inputs, runs, and copies the first outputs out: what a call of the model is, in one call of C. */
TILEWRIGHT_API int32_t tilewright_graph_call(TilewrightGraph* graph, int32_t num_values, const int32_t* inputs, const DLTensor* values,
                                             int32_t num_results, const DLTensor* results);

/* The number of the storage that an input or an output is the whole of, where the host can hand over other memory for it;
 * -1 where it cannot: the graph has more in that memory, writes over an input, or returns an input or a parameter. */
TILEWRIGHT_API int32_t tilewright_graph_input_storage(TilewrightGraph* graph, int32_t index);
TILEWRIGHT_API int32_t tilewright_graph_output_storage(TilewrightGraph* graph, int32_t index);

/* A run with these storages in the caller's memory, aligned to 64 bytes, which is read and written during the run only. Every
 * later run must be given memory for the same storages. */
TILEWRIGHT_API int32_t tilewright_graph_run_in_place(TilewrightGraph* graph, int32_t count, const int32_t* storages,
                                                     void* const* memory);

/* From the second run in a row on, a graph all of whose tensors are on one device that can record runs as one launch of a
 * recording; setting an input in place begins anew. 0: every run launches kernel by kernel. */
TILEWRIGHT_API void tilewright_graph_set_recording(TilewrightGraph* graph, int32_t enabled);

/* Records now, and fails where that cannot be. */
TILEWRIGHT_API int32_t tilewright_graph_record(TilewrightGraph* graph);
TILEWRIGHT_API int32_t tilewright_graph_is_recorded(const TilewrightGraph* graph);

/* Runs all nodes `repeat` times and writes, for every run and node, when it began in the run and how long it took, in seconds:
 * both arrays have as many numbers as there are runs times nodes. A run before that is not measured. */
TILEWRIGHT_API int32_t tilewright_graph_run_timed(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds);

/* The same without the first run, for which there is no clock. */
TILEWRIGHT_API int32_t tilewright_graph_time_runs(TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds);

/* One run as a packed function, with the graph as `self`: for measurement and for one call from another language. */
TILEWRIGHT_API int32_t tilewright_graph_run_packed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Measures one node on the values its inputs have now; a node without a function takes no time. */
TILEWRIGHT_API int32_t tilewright_graph_time_node(TilewrightGraph* graph, int32_t node, int32_t number, int32_t repeat,
                                                  int32_t min_repeat_ms, double* seconds);

/* ---- Virtual machine -------------------------------------------------------------------------------------------------------- */
typedef struct TilewrightVM TilewrightVM;

/* Reads a program, in the form that vm_read.c describes, and finds its kernels. Constants that are not in the program are
 * taken from `constants`, by position. Memory of tensors that end is kept for others if `keeps_memory` is set. On success
 * `*out` holds one reference. A program may run in several threads at once, and call itself through the host.
 * A program names a device by its kind and its position among those of `devices` that are of this kind. The host is always
 * one of them. */
TILEWRIGHT_API int32_t tilewright_vm_create_on(const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                                               TilewrightFind find, void* context, int32_t keeps_memory, const DLDevice* devices,
                                               int32_t num_devices, TilewrightVM** out);
TILEWRIGHT_API int32_t tilewright_vm_create(const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                                            TilewrightFind find, void* context, int32_t keeps_memory, TilewrightVM** out);
TILEWRIGHT_API void tilewright_vm_retain(TilewrightVM* vm);
TILEWRIGHT_API void tilewright_vm_release(TilewrightVM* vm);

TILEWRIGHT_API int32_t tilewright_vm_num_functions(const TilewrightVM* vm);
TILEWRIGHT_API int32_t tilewright_vm_function_index(const TilewrightVM* vm, const char* name); /* -1: none */
TILEWRIGHT_API int32_t tilewright_vm_num_params(const TilewrightVM* vm, int32_t function);      /* -1: no such function */

/* Runs a function on tensors, data, references and functions. A tensor that is a DLTensor, that is not on the parameter's
 * device, or that kernels cannot read in place, is copied first. */
TILEWRIGHT_API int32_t tilewright_vm_invoke(TilewrightVM* vm, int32_t function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* The same as a function object, which keeps the machine alive; a new reference. Closures that a program gives are such
 * objects too. */
TILEWRIGHT_API int32_t tilewright_vm_function(TilewrightVM* vm, int32_t function, TilewrightObject** out);

/* Calls nested within each other, 2^20 unless set; instructions of one run, and bytes of all tensors that programs make, 0
 * for any number. */
TILEWRIGHT_API void tilewright_vm_set_limits(TilewrightVM* vm, int64_t most_frames, int64_t most_instructions, uint64_t most_bytes);

/* Logs the instructions that make and move tensors, each under -1 minus its opcode; NULL for none, as at the start. */
TILEWRIGHT_API void tilewright_vm_set_call_log(TilewrightVM* vm, TilewrightCallLog* log);

/* What long runs of graphs and programs on this thread ask between kernels, every 50 ms at most: 0 to go on; -1, with the
 * thread's error set, to end with that error. NULL, as at the start, for nothing to ask. */
typedef int32_t (*TilewrightInterruptCheck)(void);
TILEWRIGHT_API void tilewright_set_interrupt_check(TilewrightInterruptCheck check);

/* Tuples, and values of algebraic data types: a tag and fields. Fields are retained; a field that is read is a new
 * reference. */
TILEWRIGHT_API int32_t tilewright_data_create(int64_t tag, const TVMFFIAny* fields, int64_t size, TilewrightObject** out);
TILEWRIGHT_API int64_t tilewright_data_tag(const TilewrightObject* data);
TILEWRIGHT_API int64_t tilewright_data_size(const TilewrightObject* data);
TILEWRIGHT_API int32_t tilewright_data_field(const TilewrightObject* data, int64_t index, TVMFFIAny* out);

/* A place that holds a value; what is read is a new reference. */
TILEWRIGHT_API int32_t tilewright_reference_create(const TVMFFIAny* value, TilewrightObject** out);
TILEWRIGHT_API void tilewright_reference_read(const TilewrightObject* reference, TVMFFIAny* out);

/* ---- Shared libraries -------------------------------------------------------------------------------------------------------- */
/* Loads an artefact and binds it to this runtime, and its code to the kernels that it carries; NULL with an error. It stays
 * loaded. */
TILEWRIGHT_API void* tilewright_library_open(const char* path);

/* A `TilewrightFind` over such a library, or, for NULL, over the functions that are linked into the program itself
 * (`tilewright_register_system_symbol`). */
TILEWRIGHT_API TilewrightObject* tilewright_library_function(void* library, const char* name);

/* ---- Sessions: a library with its model inside ---------------------------------------------------------------------------------- */
/* What `tilewright compile -o model.so` and `export_library` write has graph, parameters and code in one file. A session is
 * such a model, ready to run, with its inputs and outputs by name. */
typedef struct TilewrightSession TilewrightSession;

/* An input or an output. It lives as long as the session. */
typedef struct {
  const char* name;
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape; /* -1: any extent */
} TilewrightTensorInfo;

/* Opens a model to run on the host, or on devices as for `tilewright_graph_create_on`; NULL with an error. A library is code:
 * open only what you trust. */
TILEWRIGHT_API TilewrightSession* tilewright_open(const char* path);
TILEWRIGHT_API TilewrightSession* tilewright_open_on(const char* path, const DLDevice* devices, int32_t num_devices);
TILEWRIGHT_API void tilewright_close(TilewrightSession* session); /* NULL is fine */

/* Another session of the same model, for another thread: it shares the parameters. NULL with an error. */
TILEWRIGHT_API TilewrightSession* tilewright_session_clone(TilewrightSession* session);

TILEWRIGHT_API int32_t tilewright_session_num_inputs(const TilewrightSession* session);
TILEWRIGHT_API int32_t tilewright_session_num_outputs(const TilewrightSession* session);
TILEWRIGHT_API const TilewrightTensorInfo* tilewright_session_input_info(const TilewrightSession* session, int32_t index);
TILEWRIGHT_API const TilewrightTensorInfo* tilewright_session_output_info(const TilewrightSession* session, int32_t index);

/* Copies elements, in row-major order, into an input. Of a shape with one open extent, `num_bytes` says how large it is. */
TILEWRIGHT_API int32_t tilewright_session_set_input(TilewrightSession* session, const char* name, const void* values,
                                                    size_t num_bytes);

/* Copies a tensor of any device and strides into an input. */
TILEWRIGHT_API int32_t tilewright_session_set_tensor(TilewrightSession* session, const char* name, const DLTensor* tensor);

/* Inputs keep their values from run to run, but for those whose memory an output takes: they have its value after a run. */
TILEWRIGHT_API int32_t tilewright_session_run(TilewrightSession* session);

/* An output of the last run: a compact tensor in host memory, good until the next run or `tilewright_close`. NULL with an
 * error. */
TILEWRIGHT_API const DLTensor* tilewright_session_output(TilewrightSession* session, const char* name);

/* Copies the elements of an output to memory of exactly their size. */
TILEWRIGHT_API int32_t tilewright_session_copy_output(TilewrightSession* session, const char* name, void* values, size_t num_bytes);

/* ---- Artefacts with their own runtime ----------------------------------------------------------------------------------------- */
/* What a loading runtime gives to an artefact's embedded copy, so that both share threads, registry, errors and devices. */
typedef struct {
  uint32_t size; /* sizeof(TilewrightHost) of the giver */
  uint32_t version;
  void (*set_error)(const char* kind, const char* message);
  int32_t (*call_packed)(const char* name, void** cache, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
  void* (*workspace_alloc)(int32_t device_type, int32_t device_id, uint64_t num_bytes);
  int32_t (*workspace_free)(int32_t device_type, int32_t device_id, void* pointer);
  int32_t (*parallel_launch)(TilewrightTask body, void* closure, int32_t num_tasks);
  /* Givers of a smaller `size` end here: an artefact then has the devices of its own copy. */
  const TilewrightDeviceTable* (*device_table)(int32_t device_type);
  int32_t (*device_register)(int32_t device_type, const TilewrightDeviceTable* table);
  /* Or here: it has no slots to bind, and only `__tvm_set_device` selects devices. */
  int32_t (*bind_function)(void** slot, TilewrightObject* function);
  int32_t (*set_device)(DLDevice device);
  int32_t (*current_device)(int32_t device_type);
} TilewrightHost;

/* Changes where a member that is there already does. Members that are added at the end show in `size`. */
#define TILEWRIGHT_HOST_VERSION 1

/* This library's own table, to be passed to an artefact's `__tilewright_bind_host`. */
TILEWRIGHT_API const TilewrightHost* tilewright_host(void);

#ifdef __cplusplus
}
#endif
#endif
