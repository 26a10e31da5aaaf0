/* Memory for the virtual machine's tensors. A block that is given back waits for the next tensor of its size, or of a
 * somewhat smaller one: a program that runs a second time allocates nothing, and its tensors stay in the caches. */
#include <stdlib.h>

#include "guard.h"
#include "vm.h"

/* Sizes are rounded up to multiples of 64 bytes as far as 1 KiB, then to a quarter of a power of two. */
#define SMALL_CLASSES 16
#define NUM_CLASSES (SMALL_CLASSES + 4 * 40)
#define LARGEST_BLOCK ((uint64_t)1 << 49)

/* A tensor may take a waiting block that is so many sizes larger: four times as large at most. */
#define LARGER_CLASSES 8

/* What is kept without any thought of how much is in use. */
#define KEPT_ANYWAY ((uint64_t)1 << 20)

/* On the host it sits in the 64 bytes before the memory that it stands for. */
typedef struct Storage {
  TilewrightObject header;
  uint64_t num_bytes; /* that were asked for */
  uint32_t class_number;
  int32_t place; /* of its device */
  TwPool* pool;
  struct Storage* next; /* while it waits */
  void* data;           /* behind this on the host, else memory of the device */
} Storage;

_Static_assert(sizeof(Storage) <= TW_ALIGNMENT, "a storage's head fits before its memory");

/* What waits for tensors on one device. */
typedef struct {
  DLDevice device;
  Storage* free[NUM_CLASSES];
} Place;

struct TwPool {
  TwMutex lock;
  int64_t references; /* the machine's, and one for each storage in use */
  bool keeps_blocks;
  uint64_t limit;                 /* of what is used; 0: none */
  uint64_t used, most_used, kept; /* bytes in blocks */
  int32_t num_places;
  Place places[];
};

static uint32_t class_of(uint64_t num_bytes) {
  if (num_bytes <= 64 * SMALL_CLASSES) return num_bytes == 0 ? 0 : (uint32_t)((num_bytes - 1) / 64);
  uint32_t octave = 63 - (uint32_t)__builtin_clzll(num_bytes - 1); /* 2^octave < num_bytes <= 2^(octave + 1) */
  uint32_t quarter = (uint32_t)((num_bytes - 1) >> (octave - 2)) & 3;
  return SMALL_CLASSES + 4 * (octave - 10) + quarter;
}

/* Bytes of the blocks of a class. */
static uint64_t class_bytes(uint32_t class_number) {
  if (class_number < SMALL_CLASSES) return 64 * ((uint64_t)class_number + 1);
  uint32_t octave = 10 + (class_number - SMALL_CLASSES) / 4;
  return ((uint64_t)1 << octave) + (((uint64_t)(class_number - SMALL_CLASSES) % 4 + 1) << (octave - 2));
}

TwPool* tw_pool_create(bool keeps_blocks, const DLDevice* devices, int32_t num_devices) {
  TwPool* pool = calloc(1, sizeof *pool + (size_t)num_devices * sizeof pool->places[0]);
  if (pool == NULL) {
    tw_fail("MemoryError", "no memory for a pool");
    return NULL;
  }
  tw_mutex_init(&pool->lock);
  pool->references = 1;
  pool->keeps_blocks = keeps_blocks && tw_guard() == TW_GUARD_NONE;
  pool->num_places = num_devices;
  for (int32_t i = 0; i < num_devices; ++i) pool->places[i].device = devices[i];
  return pool;
}

void tw_pool_set_limit(TwPool* pool, uint64_t num_bytes) {
  tw_mutex_lock(&pool->lock);
  pool->limit = num_bytes;
  tw_mutex_unlock(&pool->lock);
}

static Storage* take_all(TwPool* pool) {
  Storage* all = NULL;
  for (int32_t place = 0; place < pool->num_places; ++place) {
    for (int i = 0; i < NUM_CLASSES; ++i) {
      Storage** list = &pool->places[place].free[i];
      while (*list != NULL) {
        Storage* storage = *list;
        *list = storage->next;
        storage->next = all;
        all = storage;
      }
    }
  }
  pool->kept = 0;
  return all;
}

/* True where a storage's memory lies right behind its head: on the host, unless tensors are guarded one by one. */
static bool has_memory_behind(DLDevice device) { return tw_is_host(device) && tw_guard() == TW_GUARD_NONE; }

/* A storage with its memory; NULL with an error. */
static Storage* allocate_storage(const TwPool* pool, int32_t place, uint64_t num_bytes) {
  DLDevice device = pool->places[place].device;
  bool behind = has_memory_behind(device);
  Storage* storage = tw_aligned_alloc(behind ? num_bytes + TW_ALIGNMENT : sizeof *storage);
  if (storage == NULL) {
    tw_fail("MemoryError", "no memory for a tensor of %llu bytes", (unsigned long long)num_bytes);
    return NULL;
  }
  storage->data = (char*)storage + TW_ALIGNMENT;
  if (behind || tw_device_alloc(device, num_bytes, &storage->data) == 0) return storage;
  tw_aligned_free(storage);
  return NULL;
}

static void free_storage(DLDevice device, Storage* storage) {
  if (!has_memory_behind(device)) tw_device_free(device, storage->data);
  tw_aligned_free(storage);
}

static void free_all(const TwPool* pool, Storage* storages) {
  while (storages != NULL) {
    Storage* next = storages->next;
    free_storage(pool->places[storages->place].device, storages);
    storages = next;
  }
}

void tw_pool_release(TwPool* pool) {
  if (pool == NULL) return;
  tw_mutex_lock(&pool->lock);
  pool->keeps_blocks = false; /* what is still in use is freed as it ends */
  bool last = --pool->references == 0;
  Storage* all = take_all(pool);
  tw_mutex_unlock(&pool->lock);
  free_all(pool, all);
  if (last) free(pool);
}

static void delete_storage(void* self, int flags) {
  if (!(flags & TW_DELETE_MEMORY)) return;
  Storage* storage = self;
  TwPool* pool = storage->pool;
  Place* place = &pool->places[storage->place];
  uint64_t num_bytes = class_bytes(storage->class_number);
  tw_mutex_lock(&pool->lock);
  bool last = --pool->references == 0;
  uint64_t limit = pool->most_used > KEPT_ANYWAY ? pool->most_used + pool->most_used / 2 : KEPT_ANYWAY;
  pool->used -= num_bytes;
  bool keep = pool->keeps_blocks && pool->kept + num_bytes <= limit;
  if (keep) {
    storage->next = place->free[storage->class_number];
    place->free[storage->class_number] = storage;
    pool->kept += num_bytes;
  }
  tw_mutex_unlock(&pool->lock);
  if (!keep) free_storage(place->device, storage);
  if (last) free(pool);
}

/* Takes the smallest waiting block for a size, and says its size; NULL if none waits. */
static Storage* take_waiting(TwPool* pool, int32_t place, uint32_t* number) {
  Storage** lists = pool->places[place].free;
  for (uint32_t i = *number; i < NUM_CLASSES && i <= *number + LARGER_CLASSES; ++i) {
    Storage* storage = lists[i];
    if (storage == NULL) continue;
    if (pool->limit > 0 && pool->used + class_bytes(i) > pool->limit) return NULL;
    lists[i] = storage->next;
    pool->kept -= class_bytes(i);
    *number = i;
    return storage;
  }
  return NULL;
}

int32_t tw_pool_storage(TwPool* pool, int32_t place, uint64_t num_bytes, TilewrightObject** out) {
  if (num_bytes > LARGEST_BLOCK) return tw_fail("MemoryError", "no memory for a tensor of %llu bytes", (unsigned long long)num_bytes);
  uint32_t number = class_of(num_bytes);
  tw_mutex_lock(&pool->lock);
  if (pool->limit > 0 && pool->used + class_bytes(number) > pool->limit) {
    tw_mutex_unlock(&pool->lock);
    return tw_fail("MemoryError", "a tensor of %llu bytes would take the program above its limit", (unsigned long long)num_bytes);
  }
  Storage* storage = take_waiting(pool, place, &number);
  uint64_t size = class_bytes(number);
  pool->references += 1;
  pool->used += size;
  if (pool->used > pool->most_used) pool->most_used = pool->used;
  tw_mutex_unlock(&pool->lock);
  uint64_t allocated = tw_guard() == TW_GUARD_NONE ? size : num_bytes; /* guards stand at the end of the tensor itself */
  if (storage == NULL) storage = allocate_storage(pool, place, allocated);
  if (storage == NULL) {
    /* What waits in other sizes may be enough. */
    tw_mutex_lock(&pool->lock);
    Storage* all = take_all(pool);
    tw_mutex_unlock(&pool->lock);
    if (all != NULL) {
      free_all(pool, all);
      tilewright_clear_error();
      storage = allocate_storage(pool, place, allocated);
    }
  }
  if (storage == NULL) {
    tw_mutex_lock(&pool->lock);
    pool->references -= 1;
    pool->used -= size;
    tw_mutex_unlock(&pool->lock);
    return -1;
  }
  tw_object_init(&storage->header, TILEWRIGHT_STORAGE, delete_storage);
  storage->num_bytes = num_bytes;
  storage->class_number = number;
  storage->place = place;
  storage->pool = pool;
  *out = &storage->header;
  return 0;
}

uint64_t tw_storage_bytes(const TilewrightObject* storage) { return ((const Storage*)storage)->num_bytes; }

bool tw_tensor_bytes(const int64_t* shape, int32_t ndim, DLDataType dtype, uint64_t* out) {
  uint64_t total = ((uint64_t)dtype.bits * dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(total, (uint64_t)shape[i], &total)) return false;
  }
  *out = total;
  return true;
}

static void release_storage(void* storage) { tilewright_object_release(storage); }

int32_t tw_storage_tensor(TilewrightObject* storage, uint64_t offset, const int64_t* shape, int32_t ndim, DLDataType dtype,
                          TilewrightObject** out) {
  uint64_t num_bytes, end;
  if (!tw_tensor_bytes(shape, ndim, dtype, &num_bytes) || __builtin_add_overflow(offset, num_bytes, &end) ||
      end > tw_storage_bytes(storage)) {
    return tw_fail("ValueError", "a tensor does not fit into its storage of %llu bytes", (unsigned long long)tw_storage_bytes(storage));
  }
  const Storage* within = (const Storage*)storage;
  DLDevice device = within->pool->places[within->place].device;
  DLTensor description = {(char*)within->data + offset, device, ndim, dtype, (int64_t*)shape, NULL, 0};
  tilewright_object_retain(storage);
  int32_t status = tilewright_tensor_wrap(&description, storage, release_storage, out);
  if (status != 0) tilewright_object_release(storage);
  return status;
}

int32_t tw_pool_tensor(TwPool* pool, int32_t place, const int64_t* shape, int32_t ndim, DLDataType dtype, TilewrightObject** out) {
  uint64_t num_bytes;
  if (!tw_tensor_bytes(shape, ndim, dtype, &num_bytes)) return tw_fail("ValueError", "a tensor cannot have this shape");
  TilewrightObject* storage;
  if (tw_pool_storage(pool, place, num_bytes, &storage) != 0) return -1;
  int32_t status = tw_storage_tensor(storage, 0, shape, ndim, dtype, out);
  tilewright_object_release(storage);
  return status;
}
