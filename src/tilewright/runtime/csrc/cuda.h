/* What the files of the CUDA device share. Internal to the runtime. */
#ifndef TILEWRIGHT_CUDA_H_
#define TILEWRIGHT_CUDA_H_

#include "cuda_driver.h"
#include "device.h"

#define TW_MOST_CUDA_DEVICES 64
#define TW_CUDA_NUMBERS (TILEWRIGHT_ATTRIBUTE_MEMORY_BUS_BITS + 1)

/* Two pieces of pinned memory that copies of pageable memory go through, one filled while the other is copied. */
typedef struct {
  TwMutex lock;
  void* memory[2]; /* NULL until first used, or where the system refuses */
  CUevent passed[2];
} TwCudaStage;

typedef struct TwCudaBlock TwCudaBlock;

/* Memory of one device: all blocks in use, by address, and those that were freed, by size. */
typedef struct {
  TwMutex lock;
  TwCudaBlock** used; /* a hash table of `num_buckets` chains */
  uint64_t num_buckets, num_used;
  TwCudaBlock* free[64]; /* by the size's power of two */
  CUevent* events;       /* that nobody waits for */
  int32_t num_events, most_events;
  uint64_t used_bytes, free_bytes;
} TwCudaPool;

/* What a thread records on a device, and the graph that it becomes. */
typedef struct TwCudaCapture TwCudaCapture;

typedef struct {
  CUdevice device;
  char name[256], version[16], dimensions[64];
  int numbers[TW_CUDA_NUMBERS]; /* by our attributes; -1: not known */
  int driver_version;
  size_t total_bytes;
  TwMutex lock; /* of the context's making */
  _Atomic(CUcontext) context; /* the primary one, shared with every other library of the process; NULL until first used */
  _Atomic(const char*) last_kernel;
  TwCudaPool pool;
  TwCudaStage stage;
} TwCudaDevice;

/* Loads the driver's library unless it is loaded. False, with an error only if `says_why`, where there is none. */
bool tw_cuda_load(bool says_why);

/* How many devices there are; 0 without a driver, with an error that says why. */
int32_t tw_cuda_count(void);

/* Asks the driver what a device is. */
CUresult tw_cuda_learn(TwCudaDevice* device, int32_t device_id);

/* A device whose context is current on the calling thread from now on; NULL with an error. */
TwCudaDevice* tw_cuda_enter(int32_t device_id);

/* The same without a context; and of a number that is known to be one. */
TwCudaDevice* tw_cuda_find(int32_t device_id);
TwCudaDevice* tw_cuda_device(int32_t device_id);

/* Sets the error for what a function of the driver has returned, and returns -1. `doing` ends "cuda(0) could not ...". */
int32_t tw_cuda_fail(int32_t device_id, CUresult result, const char* doing);

/* "CUDA_ERROR_OUT_OF_MEMORY: out of memory", in the driver's words. */
void tw_cuda_describe(CUresult result, char* text, size_t size);

/* True for results after which the process cannot use the device any more. */
bool tw_cuda_is_fatal(CUresult result);

/* The stream to use where the runtime gives this one. */
CUstream tw_cuda_stream(int32_t device_id, void* stream);

/* A name that lives as long as the process; NULL with an error. */
const char* tw_cuda_intern(const char* name);

/* Has the work that `stream` is given from now on wait for what `other`, of any device, was given so far. */
CUresult tw_cuda_wait_for(TwCudaDevice* device, CUstream stream, TwCudaDevice* other_device, CUstream other);

/* The graph that the calling thread records on a device; NULL where it records none. */
TwCudaCapture* tw_cuda_capture(int32_t device_id);

/* Blocks that are freed while a graph is recorded are the graph's from then on: it uses their addresses again each time that
 * it is launched. Later parts of the graph may take them. */
void tw_cuda_capture_keep(TwCudaCapture* capture, TwCudaBlock* block);
TwCudaBlock* tw_cuda_capture_take(TwCudaCapture* capture, uint64_t num_bytes);

/* An event of the pool's; the lock is held. */
CUevent tw_cuda_take_event(TwCudaPool* pool);
void tw_cuda_give_event(TwCudaPool* pool, CUevent event);

/* A list of blocks: one more, and the best for a size or NULL. */
void tw_cuda_push_block(TwCudaBlock** list, TwCudaBlock* block);
TwCudaBlock* tw_cuda_pop_block(TwCudaBlock** list, uint64_t num_bytes);

/* Gives blocks that a graph has used, and the device uses no more, back to the pool. */
void tw_cuda_release_blocks(TwCudaDevice* device, TwCudaBlock* blocks);

/* ---- members of the table ---- */
int32_t tw_cuda_attribute(int32_t device_id, int32_t attribute, TVMFFIAny* out);
int32_t tw_cuda_alloc(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out);
int32_t tw_cuda_free(int32_t device_id, void* pointer);
int32_t tw_cuda_can_copy(DLDevice from, DLDevice to);
int32_t tw_cuda_copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                     uint64_t num_bytes, void* stream);
int32_t tw_cuda_clear(int32_t device_id, void* pointer, uint64_t num_bytes, void* stream);
int32_t tw_cuda_stream_create(int32_t device_id, void** out);
int32_t tw_cuda_stream_free(int32_t device_id, void* stream);
int32_t tw_cuda_stream_set(int32_t device_id, void* stream);
int32_t tw_cuda_stream_sync(int32_t device_id, void* stream);
int32_t tw_cuda_stream_current(int32_t device_id, void** out);
int32_t tw_cuda_stream_wait(int32_t device_id, void* stream, void* other);
int32_t tw_cuda_event_create(int32_t device_id, void** out);
int32_t tw_cuda_event_free(int32_t device_id, void* event);
int32_t tw_cuda_event_record(int32_t device_id, void* event, void* stream);
int32_t tw_cuda_event_sync(int32_t device_id, void* event);
int32_t tw_cuda_event_elapsed(int32_t device_id, void* start, void* end, double* milliseconds);
int32_t tw_cuda_module_load(int32_t device_id, const void* image, size_t size, void** out);
int32_t tw_cuda_module_unload(int32_t device_id, void* module);
int32_t tw_cuda_module_function(int32_t device_id, void* module, const char* name, void** out);
int32_t tw_cuda_launch(int32_t device_id, void* function, void* const* args, int32_t num_args, const int32_t grid[3],
                       const int32_t block[3], uint32_t shared_bytes, void* stream);
int32_t tw_cuda_launch_with(int32_t device_id, void* function, void* const* args, int32_t num_args, const TilewrightLaunch* how,
                            void* stream);
int32_t tw_cuda_kernel_needs(int32_t device_id, void* function, int32_t threads, uint32_t shared_bytes, TilewrightKernelNeeds* out);
int32_t tw_cuda_record_begin(int32_t device_id);
int32_t tw_cuda_record_end(int32_t device_id, void** out);
int32_t tw_cuda_recording_launch(int32_t device_id, void* recording, void* stream);
int32_t tw_cuda_recording_free(int32_t device_id, void* recording);
int32_t tw_cuda_tensor_map(int32_t device_id, const TilewrightTensor* tensor, void* out);

#endif
