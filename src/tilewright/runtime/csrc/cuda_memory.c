/* Memory of CUDA devices. The driver allocates slowly and waits for the device when it frees, so that what was freed is
 * kept, and given out again in the order of the stream that it was freed in. */
#include <stdlib.h>

#include "cuda.h"

/* What the driver's addresses are multiples of. */
#define DRIVER_ALIGNMENT 256
#define LEAST_BYTES ((uint64_t)512)
#define LARGE_BYTES ((uint64_t)32 << 20)
#define LARGE_STEP ((uint64_t)2 << 20)

struct TwCudaBlock {
  TwCudaBlock* next;
  CUdeviceptr address;
  uint64_t num_bytes;
  CUstream freed_in; /* a free block may be used by this stream at once, and by others after `passed` */
  CUevent passed;    /* NULL for the default stream, which is always there to be asked */
};

/* Sizes that are an eighth of a power of two apart, so that a block fits the next tensor of about its size. */
static uint64_t rounded_bytes(uint64_t num_bytes) {
  uint64_t step = LARGE_STEP;
  if (num_bytes < LARGE_BYTES) {
    step = LEAST_BYTES;
    while (step * 16 <= num_bytes) step *= 2;
  }
  return (num_bytes + step - 1) / step * step;
}

static int power_of(uint64_t num_bytes) { return 63 - __builtin_clzll(num_bytes); }

/* ---- events of the pool ---- */
CUevent tw_cuda_take_event(TwCudaPool* pool) {
  if (pool->num_events > 0) return pool->events[--pool->num_events];
  CUevent event = NULL;
  return tw_cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : NULL;
}

void tw_cuda_give_event(TwCudaPool* pool, CUevent event) {
  if (event == NULL) return;
  if (pool->num_events == pool->most_events) {
    int32_t most = pool->most_events == 0 ? 16 : 2 * pool->most_events;
    CUevent* events = realloc(pool->events, (size_t)most * sizeof *events);
    if (events == NULL) {
      tw_cu.EventDestroy(event);
      return;
    }
    pool->events = events;
    pool->most_events = most;
  }
  pool->events[pool->num_events++] = event;
}

/* ---- blocks in use, by address ---- */
static TwCudaBlock** chain_of(TwCudaPool* pool, CUdeviceptr address) {
  return &pool->used[(address / LEAST_BYTES * 0x9E3779B97F4A7C15u >> 20) & (pool->num_buckets - 1)];
}

/* Makes room for one more block in use; false without memory. */
static bool grow(TwCudaPool* pool) {
  if (pool->num_used < pool->num_buckets) return true;
  TwCudaPool larger = *pool;
  larger.num_buckets = pool->num_buckets == 0 ? 64 : 2 * pool->num_buckets;
  larger.used = calloc(larger.num_buckets, sizeof *larger.used);
  if (larger.used == NULL) return false;
  for (uint64_t i = 0; i < pool->num_buckets; ++i) {
    while (pool->used[i] != NULL) {
      TwCudaBlock* block = pool->used[i];
      pool->used[i] = block->next;
      TwCudaBlock** chain = chain_of(&larger, block->address);
      block->next = *chain;
      *chain = block;
    }
  }
  free(pool->used);
  pool->used = larger.used;
  pool->num_buckets = larger.num_buckets;
  return true;
}

static void put_in_use(TwCudaPool* pool, TwCudaBlock* block) {
  TwCudaBlock** chain = chain_of(pool, block->address);
  block->next = *chain;
  *chain = block;
  pool->num_used += 1;
  pool->used_bytes += block->num_bytes;
}

static TwCudaBlock* take_from_use(TwCudaPool* pool, CUdeviceptr address) {
  if (pool->num_buckets == 0) return NULL;
  for (TwCudaBlock** at = chain_of(pool, address); *at != NULL; at = &(*at)->next) {
    if ((*at)->address != address) continue;
    TwCudaBlock* block = *at;
    *at = block->next;
    pool->num_used -= 1;
    pool->used_bytes -= block->num_bytes;
    return block;
  }
  return NULL;
}

/* ---- blocks that were freed ---- */
static void put_free(TwCudaPool* pool, TwCudaBlock* block) {
  TwCudaBlock** list = &pool->free[power_of(block->num_bytes)];
  block->next = *list;
  *list = block;
  pool->free_bytes += block->num_bytes;
}

static bool fits(const TwCudaBlock* block, uint64_t num_bytes) {
  return block->num_bytes >= num_bytes && block->num_bytes - num_bytes <= num_bytes / 4;
}

/* True if a stream may use the block now, perhaps after a wait that it is given. Two streams of a program are not made to
 * wait for each other: one of them is the default stream, which orders all anyway, or the block is at rest. */
static bool may_use(const TwCudaBlock* block, CUstream stream) {
  if (block->freed_in == stream || block->freed_in == NULL || stream == NULL) return true;
  return tw_cu.EventQuery(block->passed) == CUDA_SUCCESS;
}

/* The smallest block of a list that fits and that the stream may use. */
static TwCudaBlock** best_of(TwCudaBlock** list, uint64_t num_bytes, CUstream stream, TwCudaBlock** best) {
  for (TwCudaBlock** at = list; *at != NULL; at = &(*at)->next) {
    if (!fits(*at, num_bytes) || (best != NULL && (*best)->num_bytes <= (*at)->num_bytes)) continue;
    if (may_use(*at, stream)) best = at;
  }
  return best;
}

static TwCudaBlock* take_free(TwCudaPool* pool, uint64_t num_bytes, CUstream stream) {
  int power = power_of(num_bytes);
  TwCudaBlock** best = best_of(&pool->free[power], num_bytes, stream, NULL);
  if (best == NULL && power < 62) best = best_of(&pool->free[power + 1], num_bytes, stream, NULL);
  if (best == NULL) return NULL;
  TwCudaBlock* block = *best;
  *best = block->next;
  pool->free_bytes -= block->num_bytes;
  return block;
}

/* Has the stream wait for the work that the block was freed behind. */
static CUresult settle(TwCudaDevice* device, TwCudaBlock* block, CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  if (block->passed != NULL) {
    if (block->freed_in != stream) result = tw_cu.StreamWaitEvent(stream, block->passed, 0);
    tw_cuda_give_event(&device->pool, block->passed);
    block->passed = NULL;
  } else if (block->freed_in != stream) {
    CUevent event = tw_cuda_take_event(&device->pool);
    result = event == NULL ? CUDA_ERROR_OUT_OF_MEMORY : tw_cu.EventRecord(event, NULL);
    if (result == CUDA_SUCCESS) result = tw_cu.StreamWaitEvent(stream, event, 0);
    tw_cuda_give_event(&device->pool, event);
  }
  return result;
}

/* Gives all that is free back to the driver. */
static void trim(TwCudaPool* pool) {
  for (int i = 0; i < 64; ++i) {
    while (pool->free[i] != NULL) {
      TwCudaBlock* block = pool->free[i];
      pool->free[i] = block->next;
      tw_cu.MemFree(block->address); /* which waits for the device */
      tw_cuda_give_event(pool, block->passed);
      free(block);
    }
  }
  pool->free_bytes = 0;
}

/* A block of new memory. */
static CUresult make_block(TwCudaPool* pool, uint64_t num_bytes, TwCudaBlock** out) {
  TwCudaBlock* block = calloc(1, sizeof *block);
  if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = tw_cu.MemAlloc(&block->address, num_bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pool->free_bytes > 0) {
    trim(pool);
    result = tw_cu.MemAlloc(&block->address, num_bytes);
  }
  if (result != CUDA_SUCCESS) {
    free(block);
    return result;
  }
  block->num_bytes = num_bytes;
  *out = block;
  return result;
}

/* ---- members of the table ---- */
static int32_t out_of_memory(int32_t device_id, uint64_t num_bytes, uint64_t in_use) {
  size_t free_bytes = 0, total = 0;
  tw_cu.MemGetInfo(&free_bytes, &total);
  return tw_fail("MemoryError", "cuda(%d) has no memory for %llu bytes: %llu of %llu are free, and arrays of this process have %llu",
                 (int)device_id, (unsigned long long)num_bytes, (unsigned long long)free_bytes, (unsigned long long)total,
                 (unsigned long long)in_use);
}

int32_t tw_cuda_alloc(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out) {
  (void)hint;
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  if (alignment > DRIVER_ALIGNMENT) {
    return tw_fail("ValueError", "memory of cuda(%d) is aligned to %d bytes, not to %llu", (int)device_id, DRIVER_ALIGNMENT,
                   (unsigned long long)alignment);
  }
  TwCudaPool* pool = &device->pool;
  uint64_t size = num_bytes > UINT64_MAX / 4 ? num_bytes : rounded_bytes(num_bytes);
  TwCudaCapture* capture = tw_cuda_capture(device_id);
  CUstream stream = tw_cuda_stream(device_id, NULL);
  TwCudaBlock* block = NULL;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  tw_mutex_lock(&pool->lock);
  if (num_bytes <= UINT64_MAX / 4 && grow(pool)) {
    block = capture != NULL ? tw_cuda_capture_take(capture, size) : take_free(pool, size, stream);
    if (block == NULL) {
      result = make_block(pool, size, &block);
    } else {
      result = capture != NULL ? CUDA_SUCCESS : settle(device, block, stream);
    }
  }
  if (block != NULL) put_in_use(pool, block); /* also after a failed wait: it is given back below */
  uint64_t in_use = pool->used_bytes;
  tw_mutex_unlock(&pool->lock);
  if (result == CUDA_SUCCESS) {
    *out = (void*)(uintptr_t)block->address;
    return 0;
  }
  if (block != NULL) tw_cuda_free(device_id, (void*)(uintptr_t)block->address);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? out_of_memory(device_id, num_bytes, in_use)
                                            : tw_cuda_fail(device_id, result, "allocate memory");
}

/* Marks how far the stream is at this moment. Without an event to do it with, it is waited for. */
static void mark(TwCudaPool* pool, TwCudaBlock* block, int32_t device_id) {
  CUstream stream = tw_cuda_stream(device_id, NULL);
  block->freed_in = NULL;
  if (stream == NULL || tw_cuda_enter(device_id) == NULL) return;
  block->freed_in = stream;
  block->passed = tw_cuda_take_event(pool);
  if (block->passed != NULL && tw_cu.EventRecord(block->passed, stream) == CUDA_SUCCESS) return;
  tw_cuda_give_event(pool, block->passed);
  block->passed = NULL;
  block->freed_in = NULL;
  tw_cu.StreamSynchronize(stream);
}

int32_t tw_cuda_free(int32_t device_id, void* pointer) {
  TwCudaDevice* device = tw_cuda_find(device_id);
  if (device == NULL) return -1;
  TwCudaPool* pool = &device->pool;
  TwCudaCapture* capture = tw_cuda_capture(device_id);
  tw_mutex_lock(&pool->lock);
  TwCudaBlock* block = take_from_use(pool, (CUdeviceptr)(uintptr_t)pointer);
  if (block != NULL && capture != NULL) {
    tw_cuda_capture_keep(capture, block); /* the graph will use it each time that it is launched */
  } else if (block != NULL) {
    mark(pool, block, device_id);
    put_free(pool, block);
  }
  tw_mutex_unlock(&pool->lock);
  if (block != NULL) return 0;
  return tw_fail("ValueError", "%p is not memory of cuda(%d), or it was freed before", pointer, (int)device_id);
}

void tw_cuda_push_block(TwCudaBlock** list, TwCudaBlock* block) {
  block->next = *list;
  *list = block;
}

TwCudaBlock* tw_cuda_pop_block(TwCudaBlock** list, uint64_t num_bytes) {
  TwCudaBlock** best = NULL;
  for (TwCudaBlock** at = list; *at != NULL; at = &(*at)->next) {
    if (fits(*at, num_bytes) && (best == NULL || (*at)->num_bytes < (*best)->num_bytes)) best = at;
  }
  if (best == NULL) return NULL;
  TwCudaBlock* block = *best;
  *best = block->next;
  return block;
}

void tw_cuda_release_blocks(TwCudaDevice* device, TwCudaBlock* blocks) {
  tw_mutex_lock(&device->pool.lock);
  while (blocks != NULL) {
    TwCudaBlock* block = blocks;
    blocks = block->next;
    block->freed_in = NULL;
    put_free(&device->pool, block);
  }
  tw_mutex_unlock(&device->pool.lock);
}
