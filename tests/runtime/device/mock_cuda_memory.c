/* The memory of the simulated CUDA devices: mapped without any right of access but while something runs on a device, so
 * that whoever else reads or writes it crashes. A page that is never opened follows each block. */
#include "mock_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#define REGION_BYTES ((uint64_t)256 << 20)
#define NUM_DEVICES 2

typedef struct Block {
  struct Block* next; /* by rising address */
  char* address;
  uint64_t num_bytes, asked;
  int device;
} Block;

typedef struct Pinned {
  struct Pinned* next;
  char* address;
  uint64_t num_bytes;
} Pinned;

static char* regions[NUM_DEVICES];
static Block* blocks[NUM_DEVICES];
static uint64_t used[NUM_DEVICES];
static uint64_t limits[NUM_DEVICES] = {REGION_BYTES, REGION_BYTES};
static Pinned* pinned;

static void set_access(int rights) {
  for (int device = 0; device < NUM_DEVICES; ++device) {
    for (const Block* block = blocks[device]; block != NULL; block = block->next) {
      if (mprotect(block->address, block->num_bytes, rights) != 0) abort();
    }
  }
}

void mock_open(void) { set_access(PROT_READ | PROT_WRITE); }
void mock_close(void) { set_access(PROT_NONE); }

CUresult mock_allocate(int device, uint64_t num_bytes, CUdeviceptr* out) {
  if (regions[device] == NULL) {
    void* region = mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    regions[device] = region;
  }
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  if (num_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (num_bytes > limits[device] || used[device] > limits[device] - num_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t rounded = (num_bytes + page - 1) / page * page;
  char* address = regions[device];
  Block** place = &blocks[device];
  while (*place != NULL && (*place)->address < address + rounded + page) {
    address = (*place)->address + (*place)->num_bytes + page;
    place = &(*place)->next;
  }
  if (address + rounded + page > regions[device] + REGION_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
  Block* block = malloc(sizeof *block);
  if (block == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *block = (Block){*place, address, rounded, num_bytes, device};
  *place = block;
  used[device] += num_bytes;
  mock_counts[ALLOCATIONS] += 1;
  mock_counts[ALLOCATED] += 1;
  mock_counts[BYTES] += (int64_t)num_bytes;
  if (mprotect(address, rounded, PROT_READ | PROT_WRITE) != 0) abort();
  memset(address, 0xA5, rounded); /* whoever reads what nobody wrote shall see it */
  if (mprotect(address, rounded, PROT_NONE) != 0) abort();
  *out = (CUdeviceptr)(uintptr_t)address;
  return CUDA_SUCCESS;
}

CUresult mock_release(CUdeviceptr pointer) {
  for (int device = 0; device < NUM_DEVICES; ++device) {
    for (Block** place = &blocks[device]; *place != NULL; place = &(*place)->next) {
      Block* block = *place;
      if ((CUdeviceptr)(uintptr_t)block->address != pointer) continue;
      CUresult result = mock_run_all(device);
      *place = block->next;
      used[device] -= block->asked;
      mock_counts[ALLOCATIONS] -= 1;
      mock_counts[BYTES] -= (int64_t)block->asked;
      madvise(block->address, block->num_bytes, MADV_DONTNEED);
      free(block);
      return result;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

bool mock_is_device(const void* pointer) {
  for (int device = 0; device < NUM_DEVICES; ++device) {
    if (regions[device] != NULL && (const char*)pointer >= regions[device] && (const char*)pointer < regions[device] + REGION_BYTES) {
      return true;
    }
  }
  return false;
}

bool mock_is_pinned(const void* pointer) {
  for (const Pinned* at = pinned; at != NULL; at = at->next) {
    if ((const char*)pointer >= at->address && (const char*)pointer < at->address + at->num_bytes) return true;
  }
  return false;
}

void mock_memory_info(int device, size_t* free_bytes, size_t* total) {
  *total = limits[device];
  *free_bytes = limits[device] - used[device];
}

EXPORTED CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags);
EXPORTED CUresult cuMemFreeHost(void* pointer);
EXPORTED void mock_cuda_set_memory(int device, uint64_t num_bytes);

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  (void)flags;
  CUresult result;
  if (mock_injected(__func__, &result)) return result;
  pthread_mutex_lock(&mock_lock);
  Pinned* made = malloc(sizeof *made);
  *made = (Pinned){pinned, malloc(bytes), bytes};
  pinned = made;
  *pointer = made->address;
  pthread_mutex_unlock(&mock_lock);
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* pointer) {
  pthread_mutex_lock(&mock_lock);
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  for (Pinned** place = &pinned; *place != NULL; place = &(*place)->next) {
    Pinned* found = *place;
    if (found->address != pointer) continue;
    *place = found->next;
    free(found->address);
    free(found);
    result = CUDA_SUCCESS;
    break;
  }
  pthread_mutex_unlock(&mock_lock);
  return result;
}

/* The bytes that may be in use at a time; 0: as many as there are. */
void mock_cuda_set_memory(int device, uint64_t num_bytes) {
  pthread_mutex_lock(&mock_lock);
  limits[device] = num_bytes == 0 || num_bytes > REGION_BYTES ? REGION_BYTES : num_bytes;
  pthread_mutex_unlock(&mock_lock);
}
