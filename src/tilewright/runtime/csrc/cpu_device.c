/* The processor as a device. Its functions are done when they return, so its only stream is NULL and needs no waiting. */
#define _GNU_SOURCE
#include <string.h>

#include "device.h"

#if defined(__linux__)
#include <unistd.h>
#endif

static int32_t count(void) { return 1; }

static int32_t attribute(int32_t device_id, int32_t kind, TVMFFIAny* out) {
  (void)device_id, (void)kind, (void)out;
#if defined(__linux__)
  if (kind != TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY && kind != TILEWRIGHT_ATTRIBUTE_FREE_MEMORY) return 0;
  long pages = sysconf(kind == TILEWRIGHT_ATTRIBUTE_TOTAL_MEMORY ? _SC_PHYS_PAGES : _SC_AVPHYS_PAGES);
  long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages >= 0 && page_bytes > 0) *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = (int64_t)pages * page_bytes};
#endif
  return 0;
}

static int32_t allocate(int32_t device_id, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out) {
  (void)device_id, (void)hint;
  *out = alignment <= TW_ALIGNMENT ? tw_aligned_alloc(num_bytes) : NULL;
  if (*out != NULL) return 0;
  if (alignment > TW_ALIGNMENT) return tw_fail("ValueError", "memory of the host is aligned to %d bytes, no more", TW_ALIGNMENT);
  return tw_fail("MemoryError", "no memory for %llu bytes", (unsigned long long)num_bytes);
}

static int32_t release(int32_t device_id, void* pointer) {
  (void)device_id;
  tw_aligned_free(pointer);
  return 0;
}

static int32_t copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                    uint64_t num_bytes, void* stream) {
  (void)from_device, (void)to_device, (void)stream;
  memmove((char*)to + to_offset, (const char*)from + from_offset, (size_t)num_bytes);
  return 0;
}

static int32_t create_stream(int32_t device_id, void** out) {
  (void)device_id;
  *out = NULL;
  return 0;
}

static int32_t use_stream(int32_t device_id, void* stream) {
  (void)device_id;
  return stream == NULL ? 0 : tw_fail("ValueError", "the only stream of the host is NULL");
}

const TilewrightDeviceTable tw_cpu_device = {
    .size = sizeof(TilewrightDeviceTable),
    .flags = TILEWRIGHT_DEVICE_HOST_READS,
    .name = "cpu",
    .count = count,
    .attribute = attribute,
    .alloc = allocate,
    .free = release,
    .copy = copy,
    .stream_create = create_stream,
    .stream_free = use_stream,
    .stream_set = use_stream,
    .stream_sync = use_stream,
};

/* Host memory that another library has pinned for its GPU: it is read as any other, and never allocated here. */
const TilewrightDeviceTable tw_pinned_device = {
    .size = sizeof(TilewrightDeviceTable),
    .flags = TILEWRIGHT_DEVICE_HOST_READS,
    .name = "cuda_host",
    .copy = copy,
};
