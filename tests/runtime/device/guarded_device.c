/* A device in host memory that nobody but its own driver may touch: the worked example of docs/new-device.md, and what
 * the tests run every path of the runtime on.
 *
 * Its memory is mapped without any right of access. It is opened while a copy or a kernel of the device runs, and closed
 * again: whoever else reads or writes it crashes. Copies and launches wait in a queue until somebody waits for the device,
 * so that a result that is read too early is a wrong one. Everything that is allocated is counted.
 *
 * Kernels have the form `void kernel(void** args, const int32_t grid[3], const int32_t block[3], void* shared)`; an image
 * is a shared object with such functions or, of size 0, an array of GuardedKernel. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tilewright.h"

#define NUM_DEVICES 2
#define REGION_BYTES ((uint64_t)256 << 20)
#define MOST_ARGS 32
#define MOST_THREADS 256

#define EXPORTED __attribute__((visibility("default")))

typedef void (*Kernel)(void** args, const int32_t grid[3], const int32_t block[3], void* shared);

/* One function of an image that is an array; the last has no name. */
typedef struct {
  const char* name;
  Kernel kernel;
} GuardedKernel;

/* Memory in use, from `offset` of the region; a page that is never opened follows it. */
typedef struct Block {
  struct Block* next; /* by rising offset */
  uint64_t offset, num_bytes;
} Block;

typedef struct {
  double milliseconds; /* when it was passed; negative before */
} Event;

/* What waits in the queue: a copy, a launch, or an event to pass. */
typedef struct Operation {
  struct Operation* next;
  const char* from;
  char* to;
  uint64_t num_bytes;
  Kernel kernel;
  int64_t args[MOST_ARGS];
  int32_t num_args;
  int32_t grid[3], block[3];
  uint32_t shared_bytes;
  Event* event;
} Operation;

/* What `guarded_count` tells. */
enum { ALLOCATIONS, BYTES, STREAMS, EVENTS, MODULES, COPIES, LAUNCHES, WAITS, NUM_COUNTS };

typedef struct {
  char* region;
  uint64_t limit; /* of bytes in use */
  Block* blocks;
  Operation* first;
  Operation** last;
  int64_t counts[NUM_COUNTS];
} Device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Device devices[NUM_DEVICES];

static int32_t fail(const char* kind, const char* message) {
  tilewright_set_error(kind, message);
  return -1;
}

/* The device of a number, with the lock held; NULL with an error, and without the lock. */
static Device* enter(int32_t device_id) {
  char message[80];
  if (device_id < 0 || device_id >= NUM_DEVICES) {
    snprintf(message, sizeof message, "there is no guarded(%d): this process has %d of them", (int)device_id, NUM_DEVICES);
    fail("ValueError", message);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  Device* device = &devices[device_id];
  if (device->region == NULL) {
    void* region = mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
      pthread_mutex_unlock(&lock);
      fail("MemoryError", "the system refuses the region of a guarded device");
      return NULL;
    }
    device->region = region;
    device->limit = REGION_BYTES;
    device->last = &device->first;
  }
  return device;
}

static int32_t leave(int32_t status) {
  pthread_mutex_unlock(&lock);
  return status;
}

/* ---- the queue ---- */
static void set_access(const Device* device, int rights) {
  for (const Block* block = device->blocks; block != NULL; block = block->next) {
    if (mprotect(device->region + block->offset, block->num_bytes, rights) != 0) abort();
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void execute(Operation* operation) {
  if (operation->event != NULL) {
    operation->event->milliseconds = now();
  } else if (operation->kernel != NULL) {
    void* args[MOST_ARGS];
    for (int32_t i = 0; i < operation->num_args; ++i) args[i] = &operation->args[i];
    void* shared = calloc(1, operation->shared_bytes + 1);
    if (shared == NULL) abort();
    operation->kernel(args, operation->grid, operation->block, shared);
    free(shared);
  } else {
    memmove(operation->to, operation->from, operation->num_bytes);
  }
}

/* Does all that waits. The lock is held. */
static void drain(Device* device) {
  if (device->first == NULL) return;
  device->counts[WAITS] += 1;
  set_access(device, PROT_READ | PROT_WRITE);
  while (device->first != NULL) {
    Operation* operation = device->first;
    device->first = operation->next;
    execute(operation);
    free(operation);
  }
  device->last = &device->first;
  set_access(device, PROT_NONE);
}

/* A new operation at the end of the queue; NULL with an error. The lock is held. */
static Operation* enqueue(Device* device) {
  Operation* operation = calloc(1, sizeof *operation);
  if (operation == NULL) {
    fail("MemoryError", "no memory for the queue of a guarded device");
    return NULL;
  }
  *device->last = operation;
  device->last = &operation->next;
  return operation;
}

/* ---- memory ---- */
static int32_t count(void) { return NUM_DEVICES; }

static int32_t allocate(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out) {
  (void)hint;
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  char message[120];
  Block* block = malloc(sizeof *block);
  uint64_t rounded = num_bytes > REGION_BYTES ? UINT64_MAX : (num_bytes + page - 1) / page * page;
  uint64_t used = (uint64_t)device->counts[BYTES];
  uint64_t offset = 0;
  Block** place = &device->blocks; /* the first gap that is large enough */
  while (rounded != UINT64_MAX && *place != NULL && (*place)->offset < offset + rounded + page) {
    offset = (*place)->offset + (*place)->num_bytes + page;
    place = &(*place)->next;
  }
  if (block == NULL || alignment > page || rounded > device->limit || used > device->limit - rounded ||
      offset + rounded + page > REGION_BYTES) {
    free(block);
    snprintf(message, sizeof message, "guarded(%d) has no memory for %llu bytes: %llu of %llu are in use", (int)device_id,
             (unsigned long long)num_bytes, (unsigned long long)used, (unsigned long long)device->limit);
    leave(0);
    return fail("MemoryError", message);
  }
  *block = (Block){*place, offset, rounded};
  *place = block;
  device->counts[ALLOCATIONS] += 1;
  device->counts[BYTES] += (int64_t)rounded;
  *out = device->region + offset;
  if (mprotect(*out, rounded, PROT_READ | PROT_WRITE) != 0) abort();
  memset(*out, 0xA5, rounded); /* whoever reads what nobody wrote shall see it */
  if (mprotect(*out, rounded, PROT_NONE) != 0) abort();
  return leave(0);
}

static int32_t release(int32_t device_id, void* pointer) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  drain(device); /* what waits may use the memory */
  for (Block** place = &device->blocks; *place != NULL; place = &(*place)->next) {
    Block* block = *place;
    if (device->region + block->offset != pointer) continue;
    *place = block->next;
    device->counts[ALLOCATIONS] -= 1;
    device->counts[BYTES] -= (int64_t)block->num_bytes;
    madvise(pointer, block->num_bytes, MADV_DONTNEED);
    free(block);
    return leave(0);
  }
  leave(0);
  return fail("ValueError", "this is not memory of the guarded device, or it was freed before");
}

/* Between the host and a guarded device, and within one; not from one guarded device to another. */
static int32_t can_copy(DLDevice from, DLDevice to) {
  bool own_from = from.device_type == kDLExtDev, own_to = to.device_type == kDLExtDev;
  if (own_from && own_to) return from.device_id == to.device_id;
  int32_t other = own_from ? to.device_type : from.device_type;
  return (tilewright_device_flags(other) & TILEWRIGHT_DEVICE_HOST_READS) != 0;
}

static int32_t copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                    uint64_t num_bytes, void* stream) {
  (void)stream; /* all streams of a device are one queue */
  Device* device = enter(from_device.device_type == kDLExtDev ? from_device.device_id : to_device.device_id);
  if (device == NULL) return -1;
  Operation* operation = enqueue(device);
  if (operation == NULL) return leave(-1);
  operation->from = (const char*)from + from_offset;
  operation->to = (char*)to + to_offset;
  operation->num_bytes = num_bytes;
  device->counts[COPIES] += 1;
  return leave(0);
}

/* ---- streams and events ---- */
static int32_t create_stream(int32_t device_id, void** out) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  *out = malloc(1);
  if (*out == NULL) return leave(fail("MemoryError", "no memory for a stream"));
  device->counts[STREAMS] += 1;
  return leave(0);
}

static int32_t free_stream(int32_t device_id, void* stream) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  device->counts[STREAMS] -= stream != NULL;
  free(stream);
  return leave(0);
}

static int32_t set_stream(int32_t device_id, void* stream) {
  (void)stream;
  return enter(device_id) == NULL ? -1 : leave(0);
}

static int32_t sync_stream(int32_t device_id, void* stream) {
  (void)stream;
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  drain(device);
  return leave(0);
}

static int32_t create_event(int32_t device_id, void** out) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  Event* event = malloc(sizeof *event);
  if (event == NULL) return leave(fail("MemoryError", "no memory for an event"));
  event->milliseconds = -1;
  *out = event;
  device->counts[EVENTS] += 1;
  return leave(0);
}

static int32_t free_event(int32_t device_id, void* event) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  drain(device);
  device->counts[EVENTS] -= event != NULL;
  free(event);
  return leave(0);
}

static int32_t record_event(int32_t device_id, void* event, void* stream) {
  (void)stream;
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  Operation* operation = enqueue(device);
  if (operation == NULL) return leave(-1);
  operation->event = event;
  return leave(0);
}

static int32_t sync_event(int32_t device_id, void* event) { return sync_stream(device_id, event); }

static int32_t elapsed_between(int32_t device_id, void* start, void* end, double* milliseconds) {
  (void)device_id;
  const Event *first = start, *second = end;
  if (first->milliseconds < 0 || second->milliseconds < 0) return fail("RuntimeError", "an event has not been passed yet");
  *milliseconds = second->milliseconds - first->milliseconds;
  return 0;
}

/* ---- code ---- */
typedef struct {
  void* library;
  const GuardedKernel* kernels; /* where there is no library */
} Module;

/* A shared object from its bytes, by way of a file that lives no longer than this. */
static void* open_image(const void* image, size_t size) {
  char path[] = "/tmp/guarded-XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return NULL;
  bool written = write(file, image, size) == (ssize_t)size;
  close(file);
  void* library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  return library;
}

static int32_t load_module(int32_t device_id, const void* image, size_t size, void** out) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  Module* module = calloc(1, sizeof *module);
  if (module == NULL) return leave(fail("MemoryError", "no memory for a module"));
  if (size == 0) {
    module->kernels = image;
  } else {
    module->library = open_image(image, size);
  }
  if (module->kernels == NULL && module->library == NULL) {
    free(module);
    return leave(fail("ValueError", "the image is not a shared object of this machine"));
  }
  device->counts[MODULES] += 1;
  *out = module;
  return leave(0);
}

static int32_t unload_module(int32_t device_id, void* module) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  drain(device);
  Module* loaded = module;
  if (loaded->library != NULL) dlclose(loaded->library);
  free(loaded);
  device->counts[MODULES] -= 1;
  return leave(0);
}

static int32_t find_function(int32_t device_id, void* module, const char* name, void** out) {
  (void)device_id;
  const Module* loaded = module;
  *out = loaded->library != NULL ? dlsym(loaded->library, name) : NULL;
  for (const GuardedKernel* at = loaded->kernels; at != NULL && at->name != NULL; ++at) {
    if (strcmp(at->name, name) == 0) memcpy(out, &at->kernel, sizeof *out);
  }
  if (*out != NULL) return 0;
  char message[160];
  snprintf(message, sizeof message, "the module has no kernel %.100s", name);
  return fail("ValueError", message);
}

static int32_t launch(int32_t device_id, void* function, void* const* args, int32_t num_args, const int32_t grid[3],
                      const int32_t block[3], uint32_t shared_bytes, void* stream) {
  (void)stream;
  if (num_args < 0 || num_args > MOST_ARGS) return fail("ValueError", "a kernel of the guarded device takes up to 32 arguments");
  if ((int64_t)block[0] * block[1] * block[2] > MOST_THREADS) {
    return fail("ValueError", "a block of the guarded device has up to 256 threads");
  }
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  Operation* operation = enqueue(device);
  if (operation == NULL) return leave(-1);
  memcpy(&operation->kernel, &function, sizeof operation->kernel);
  for (int32_t i = 0; i < num_args; ++i) memcpy(&operation->args[i], args[i], sizeof operation->args[i]);
  operation->num_args = num_args;
  memcpy(operation->grid, grid, sizeof operation->grid);
  memcpy(operation->block, block, sizeof operation->block);
  operation->shared_bytes = shared_bytes;
  device->counts[LAUNCHES] += 1;
  return leave(0);
}

/* ---- attributes ---- */
static int32_t attribute(int32_t device_id, int32_t kind, TVMFFIAny* out) {
  char name[40];
  int64_t number;
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  uint64_t total = device->limit, used = (uint64_t)device->counts[BYTES];
  leave(0);
  switch (kind) {
    case TILEWRIGHT_ATTRIBUTE_DEVICE_NAME:
      snprintf(name, sizeof name, "guarded host memory %d", (int)device_id);
      return tilewright_make_string(name, strlen(name), out);
    case TILEWRIGHT_ATTRIBUTE_COMPUTE_VERSION:
      return tilewright_make_string("1.0", 3, out);
    case TILEWRIGHT_ATTRIBUTE_MAX_THREAD_DIMENSIONS:
      return tilewright_make_string("[256, 16, 4]", 12, out);
    case TILEWRIGHT_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      number = MOST_THREADS;
      break;
    case TILEWRIGHT_ATTRIBUTE_WARP_SIZE:
      number = 1;
      break;
    case TILEWRIGHT_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      number = 1 << 16;
      break;
    case TILEWRIGHT_ATTRIBUTE_MULTI_PROCESSOR_COUNT:
      number = 1;
      break;
    case TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY:
      number = (int64_t)total;
      break;
    case TILEWRIGHT_ATTRIBUTE_FREE_MEMORY:
      number = (int64_t)(total - used);
      break;
    default:
      return 0;
  }
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = number};
  return 0;
}

/* ---- for tests ---- */
EXPORTED int64_t guarded_count(int32_t device_id, int32_t what);
EXPORTED void guarded_set_memory(int32_t device_id, uint64_t num_bytes);

int64_t guarded_count(int32_t device_id, int32_t what) {
  Device* device = enter(device_id);
  if (device == NULL) return -1;
  int64_t number = device->counts[what];
  leave(0);
  return number;
}

/* The bytes that may be in use at a time; 0: as many as there are. */
void guarded_set_memory(int32_t device_id, uint64_t num_bytes) {
  Device* device = enter(device_id);
  if (device == NULL) return;
  device->limit = num_bytes == 0 || num_bytes > REGION_BYTES ? REGION_BYTES : num_bytes;
  leave(0);
}

static const TilewrightDeviceTable table = {
    .size = sizeof(TilewrightDeviceTable),
    .flags = TILEWRIGHT_DEVICE_ASYNCHRONOUS,
    .name = "guarded",
    .count = count,
    .attribute = attribute,
    .alloc = allocate,
    .free = release,
    .can_copy = can_copy,
    .copy = copy,
    .stream_create = create_stream,
    .stream_free = free_stream,
    .stream_set = set_stream,
    .stream_sync = sync_stream,
    .event_create = create_event,
    .event_free = free_event,
    .event_record = record_event,
    .event_sync = sync_event,
    .event_elapsed = elapsed_between,
    .module_load = load_module,
    .module_unload = unload_module,
    .module_function = find_function,
    .launch = launch,
};

/* Runs when the program or the library starts. */
__attribute__((constructor)) static void register_device(void) { tilewright_device_register(kDLExtDev, &table); }
