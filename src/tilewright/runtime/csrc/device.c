/* The table of devices: who is in it, and every question to one of them. */
#include "device.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"

/* DLPack's numbers end far below; those of remote sessions begin here. */
#define MOST_TYPES 128

/* Host memory that a copy between two devices goes through, at a time. */
#define STAGE_BYTES ((uint64_t)16 << 20)

/* What is known without a registration. Entries are never taken out again. */
static _Atomic(const TilewrightDeviceTable*) tables[MOST_TYPES] = {
    [kDLCPU] = &tw_cpu_device,
#if !defined(TILEWRIGHT_NO_CUDA) /* a static program, which could not open the driver */
    [kDLCUDAHost] = &tw_pinned_device,
    [kDLCUDA] = &tw_cuda_table,
#endif
};

/* The runtime that loaded this artefact, if it shares its devices; NULL where the tables are our own. */
static const TilewrightHost* host_with_devices(void) {
  const TilewrightHost* host = tw_bound_host();
  return TW_HOST_HAS(host, device_register) ? host : NULL;
}

int32_t tilewright_device_register(int32_t device_type, const TilewrightDeviceTable* table) {
  const TilewrightHost* host = host_with_devices();
  if (host != NULL) return host->device_register(device_type, table);
  if (device_type < 0 || device_type >= MOST_TYPES) {
    return tw_fail("ValueError", "%d cannot be the number of a kind of device; 0 to %d can", (int)device_type, MOST_TYPES - 1);
  }
  if (table->size < offsetof(TilewrightDeviceTable, attribute) || table->name == NULL) {
    return tw_fail("ValueError", "the table of device type %d has no size or no name", (int)device_type);
  }
  TilewrightDeviceTable* copy = calloc(1, sizeof *copy);
  if (copy == NULL) return tw_fail("MemoryError", "no memory to register a device");
  memcpy(copy, table, table->size < sizeof *copy ? table->size : sizeof *copy);
  copy->size = sizeof *copy;
  const TilewrightDeviceTable* before = NULL;
  if (atomic_compare_exchange_strong(&tables[device_type], &before, copy)) return 0;
  free(copy);
  return tw_fail("ValueError", "device type %d has a driver already: %s", (int)device_type, before->name);
}

const TilewrightDeviceTable* tilewright_device_table(int32_t device_type) {
  const TilewrightHost* host = host_with_devices();
  if (host != NULL) return host->device_table(device_type);
  if (device_type < 0 || device_type >= MOST_TYPES) return NULL;
  return atomic_load_explicit(&tables[device_type], memory_order_acquire);
}

uint32_t tilewright_device_flags(int32_t device_type) {
  const TilewrightDeviceTable* table = tilewright_device_table(device_type);
  return table != NULL ? table->flags : 0;
}

/* ---- messages ---- */
const char* tw_device_name(TwDeviceName* name, DLDevice device) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  TwDeviceKind kind;
  snprintf(name->text, sizeof name->text, "%.40s(%d)", table != NULL ? table->name : tw_device_kind(&kind, device.device_type),
           (int)device.device_id);
  return name->text;
}

static int32_t no_driver(DLDevice device) {
  TwDeviceName name;
  TwDeviceKind kind;
  return tw_fail("RuntimeError", "%s cannot be used: this runtime has no driver for devices of the kind %s",
                 tw_device_name(&name, device), tw_device_kind(&kind, device.device_type));
}

static int32_t lacks(DLDevice device, const char* facility) {
  TwDeviceName name;
  return tw_fail("NotImplementedError", "the driver of %s has no %s", tw_device_name(&name, device), facility);
}

/* A member of a table that may be older than this file. */
#define HAS(table, member) \
  ((table)->size >= offsetof(TilewrightDeviceTable, member) + sizeof((table)->member) && (table)->member != NULL)

int32_t tilewright_device_require(DLDevice device) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  if (table == NULL) return no_driver(device);
  if (!HAS(table, count) || table->count() > 0) return 0;
  TwDeviceName name;
  char why[400];
  snprintf(why, sizeof why, "%s", tilewright_error_message() != NULL ? tilewright_error_message() : "there are no such devices here");
  return tw_fail("RuntimeError", "%s cannot be used: %s", tw_device_name(&name, device), why);
}

/* Asks the member of a device's table, or fails with a message that says what there is not. */
#define ASK(device, member, facility, ...)                                                 \
  do {                                                                                     \
    const TilewrightDeviceTable* table = tilewright_device_table((device).device_type);    \
    if (table == NULL) return no_driver(device);                                           \
    if (!HAS(table, member)) return lacks(device, facility);                               \
    return table->member((device).device_id, __VA_ARGS__);                                 \
  } while (0)

/* ---- attributes and memory ---- */
int32_t tilewright_device_attribute(DLDevice device, int32_t attribute, TVMFFIAny* out) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  *out = (TVMFFIAny){0};
  if (attribute == TILEWRIGHT_ATTRIBUTE_EXISTS) { /* whoever asks wants no error */
    *out = (TVMFFIAny){.type_index = TILEWRIGHT_INT};
    if (table == NULL || !HAS(table, count)) return 0;
    int32_t count = table->count();
    if (count == 0) tilewright_clear_error(); /* that says why there are none */
    out->v_int64 = device.device_id >= 0 && device.device_id < count;
    return 0;
  }
  if (table == NULL) return no_driver(device);
  return HAS(table, attribute) ? table->attribute(device.device_id, attribute, out) : 0;
}

int32_t tilewright_device_alloc(DLDevice device, uint64_t num_bytes, uint64_t alignment, DLDataType hint, void** out) {
  /* Nothing still needs an address; among guarded tensors, one that nobody may read. */
  bool guarded = tw_is_host(device) && tw_guard() != TW_GUARD_NONE;
  ASK(device, alloc, "memory", num_bytes > 0 || guarded ? num_bytes : 1, alignment, hint, out);
}

int32_t tilewright_device_free(DLDevice device, void* pointer) {
  if (pointer == NULL) return 0;
  ASK(device, free, "memory", pointer);
}

int32_t tw_device_alloc(DLDevice device, uint64_t num_bytes, void** out) {
  return tilewright_device_alloc(device, num_bytes, TW_ALIGNMENT, (DLDataType){kDLUInt, 8, 1}, out);
}

void tw_device_free(DLDevice device, void* pointer) {
  const TilewrightDeviceTable* table = pointer != NULL ? tilewright_device_table(device.device_type) : NULL;
  if (table != NULL && HAS(table, free)) table->free(device.device_id, pointer);
}

/* ---- copies ---- */
static bool can_copy(const TilewrightDeviceTable* table, DLDevice own, DLDevice from, DLDevice to) {
  if (table == NULL || !HAS(table, copy)) return false;
  if (HAS(table, can_copy)) return table->can_copy(from, to) != 0;
  DLDevice other = tw_same_device(own, from) ? to : from;
  return tw_same_device(own, other) || tw_host_reads(other);
}

/* The device whose driver copies between two: one that is not the host, if it can; `false` when neither can. */
static bool find_copier(DLDevice from, DLDevice to, DLDevice* out) {
  DLDevice order[] = {to, from};
  if (tw_host_reads(to)) order[0] = from, order[1] = to;
  for (int i = 0; i < 2; ++i) {
    *out = order[i];
    if (can_copy(tilewright_device_table(order[i].device_type), order[i], from, to)) return true;
  }
  return false;
}

/* One copy by one driver. Where host memory takes part, its owner may use it as soon as this returns. */
static int32_t copy_with(DLDevice copier, const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset,
                         DLDevice to_device, uint64_t num_bytes, void* stream) {
  const TilewrightDeviceTable* table = tilewright_device_table(copier.device_type);
  if (table->copy(from, from_offset, from_device, to, to_offset, to_device, num_bytes, stream) != 0) return -1;
  bool waits = (table->flags & (TILEWRIGHT_DEVICE_ASYNCHRONOUS | TILEWRIGHT_DEVICE_SETTLES_HOST)) == TILEWRIGHT_DEVICE_ASYNCHRONOUS && ((tilewright_device_flags(from_device.device_type) |
                                                                    tilewright_device_flags(to_device.device_type)) &
                                                                   TILEWRIGHT_DEVICE_HOST_READS);
  return waits ? tilewright_stream_sync(copier, stream) : 0;
}

static int32_t copy_through_host(const char* from, uint64_t from_offset, DLDevice from_device, char* to, uint64_t to_offset,
                                 DLDevice to_device, uint64_t num_bytes) {
  DLDevice reader, writer;
  if (!find_copier(from_device, TW_HOST, &reader)) return lacks(from_device, "copies to the host");
  if (!find_copier(TW_HOST, to_device, &writer)) return lacks(to_device, "copies from the host");
  uint64_t stage_bytes = num_bytes < STAGE_BYTES ? num_bytes : STAGE_BYTES;
  void* stage = tw_aligned_alloc(stage_bytes);
  if (stage == NULL) return tw_fail("MemoryError", "no memory on the host for a copy between two devices");
  int32_t status = 0;
  for (uint64_t done = 0; done < num_bytes && status == 0; done += stage_bytes) {
    uint64_t part = num_bytes - done < stage_bytes ? num_bytes - done : stage_bytes;
    status = copy_with(reader, from, from_offset + done, from_device, stage, 0, TW_HOST, part, NULL);
    if (status == 0) status = copy_with(writer, stage, 0, TW_HOST, to, to_offset + done, to_device, part, NULL);
  }
  tw_aligned_free(stage);
  return status;
}

int32_t tilewright_device_copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset,
                               DLDevice to_device, uint64_t num_bytes, void* stream) {
  if (tilewright_device_require(from_device) != 0 || tilewright_device_require(to_device) != 0) return -1;
  if (num_bytes == 0) return 0;
  DLDevice copier;
  if (find_copier(from_device, to_device, &copier)) {
    return copy_with(copier, from, from_offset, from_device, to, to_offset, to_device, num_bytes, stream);
  }
  return copy_through_host(from, from_offset, from_device, to, to_offset, to_device, num_bytes);
}

int32_t tw_device_clear(DLDevice device, void* pointer, uint64_t num_bytes) {
  if (tw_host_reads(device)) {
    memset(pointer, 0, (size_t)num_bytes);
    return 0;
  }
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  if (table != NULL && HAS(table, clear)) return num_bytes == 0 ? 0 : table->clear(device.device_id, pointer, num_bytes, NULL);
  uint64_t stage_bytes = num_bytes < STAGE_BYTES ? num_bytes : STAGE_BYTES;
  void* zeros = tw_aligned_alloc(stage_bytes);
  if (zeros == NULL) return tw_fail("MemoryError", "no memory on the host for %llu zeros", (unsigned long long)stage_bytes);
  memset(zeros, 0, (size_t)stage_bytes);
  int32_t status = 0;
  for (uint64_t done = 0; done < num_bytes && status == 0; done += stage_bytes) {
    uint64_t part = num_bytes - done < stage_bytes ? num_bytes - done : stage_bytes;
    status = tilewright_device_copy(zeros, 0, TW_HOST, pointer, done, device, part, NULL);
  }
  tw_aligned_free(zeros);
  return status;
}

/* ---- the device of a thread ---- */
static _Thread_local int32_t current_devices[MOST_TYPES];

int32_t tilewright_set_device(DLDevice device) {
  const TilewrightHost* host = tw_bound_host();
  if (TW_HOST_HAS(host, set_device)) return host->set_device(device);
  if (device.device_type < 0 || device.device_type >= MOST_TYPES) return no_driver(device);
  current_devices[device.device_type] = device.device_id;
  return 0;
}

int32_t tilewright_current_device(int32_t device_type) {
  const TilewrightHost* host = tw_bound_host();
  if (TW_HOST_HAS(host, current_device)) return host->current_device(device_type);
  return device_type >= 0 && device_type < MOST_TYPES ? current_devices[device_type] : 0;
}

int32_t tw_set_device_packed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  *result = (TVMFFIAny){0};
  if (num_args < 2 || args[0].type_index != TILEWRIGHT_INT || args[1].type_index != TILEWRIGHT_INT) {
    return tw_fail("TypeError", "__tvm_set_device takes the number of a kind of device and that of a device");
  }
  return tilewright_set_device((DLDevice){(int32_t)args[0].v_int64, (int32_t)args[1].v_int64});
}

/* ---- recordings ---- */
static _Thread_local int32_t num_recordings; /* that this thread is at */

bool tw_is_recording(void) { return num_recordings > 0; }

static int32_t end_recording(DLDevice device, void** out) { ASK(device, record_end, "recordings", out); }

int32_t tilewright_record_begin(DLDevice device) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  if (table == NULL) return no_driver(device);
  if (!HAS(table, record_begin)) return lacks(device, "recordings");
  if (table->record_begin(device.device_id) != 0) return -1;
  num_recordings += 1;
  return 0;
}

int32_t tilewright_record_end(DLDevice device, void** out) {
  if (num_recordings > 0) num_recordings -= 1;
  return end_recording(device, out);
}

int32_t tilewright_recording_launch(DLDevice device, void* recording, void* stream) {
  ASK(device, recording_launch, "recordings", recording, stream);
}

int32_t tilewright_recording_free(DLDevice device, void* recording) { ASK(device, recording_free, "recordings", recording); }

bool tw_device_records(DLDevice device) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  return table != NULL && HAS(table, record_begin) && HAS(table, record_end) && HAS(table, recording_launch) && HAS(table, recording_free);
}

/* ---- streams ---- */
int32_t tilewright_stream_create(DLDevice device, void** out) { ASK(device, stream_create, "streams", out); }
int32_t tilewright_stream_free(DLDevice device, void* stream) { ASK(device, stream_free, "streams", stream); }
int32_t tilewright_stream_set(DLDevice device, void* stream) { ASK(device, stream_set, "streams", stream); }
int32_t tilewright_stream_sync(DLDevice device, void* stream) { ASK(device, stream_sync, "way to wait for it", stream); }
int32_t tilewright_stream_current(DLDevice device, void** out) { ASK(device, stream_current, "streams that can be shared", out); }
int32_t tilewright_stream_wait(DLDevice device, void* stream, void* other) {
  ASK(device, stream_wait, "order between streams", stream, other);
}

int32_t tw_device_wait(DLDevice device) {
  if (!(tilewright_device_flags(device.device_type) & TILEWRIGHT_DEVICE_ASYNCHRONOUS)) return 0;
  return tilewright_stream_sync(device, NULL);
}

/* ---- events ---- */
int32_t tilewright_event_create(DLDevice device, void** out) { ASK(device, event_create, "events", out); }
int32_t tilewright_event_free(DLDevice device, void* event) { ASK(device, event_free, "events", event); }
int32_t tilewright_event_record(DLDevice device, void* event, void* stream) { ASK(device, event_record, "events", event, stream); }
int32_t tilewright_event_sync(DLDevice device, void* event) { ASK(device, event_sync, "events", event); }
int32_t tilewright_event_elapsed(DLDevice device, void* start, void* end, double* milliseconds) {
  ASK(device, event_elapsed, "clock between events", start, end, milliseconds);
}

bool tw_device_has_events(DLDevice device) {
  const TilewrightDeviceTable* table = tilewright_device_table(device.device_type);
  return table != NULL && HAS(table, event_create) && HAS(table, event_free) && HAS(table, event_record) && HAS(table, event_sync) &&
         HAS(table, event_elapsed);
}

/* ---- code ---- */
int32_t tilewright_module_load(DLDevice device, const void* image, size_t size, void** out) {
  ASK(device, module_load, "way to load code", image, size, out);
}

int32_t tilewright_module_unload(DLDevice device, void* module) { ASK(device, module_unload, "way to load code", module); }

int32_t tilewright_module_function(DLDevice device, void* module, const char* name, void** out) {
  ASK(device, module_function, "way to load code", module, name, out);
}

int32_t tilewright_launch(DLDevice device, void* function, void* const* args, int32_t num_args, const int32_t grid[3],
                          const int32_t block[3], uint32_t shared_bytes, void* stream) {
  ASK(device, launch, "way to launch code", function, args, num_args, grid, block, shared_bytes, stream);
}

int32_t tilewright_launch_with(DLDevice device, void* function, void* const* args, int32_t num_args, const TilewrightLaunch* how,
                               void* stream) {
  ASK(device, launch_with, "clusters", function, args, num_args, how, stream);
}

int32_t tilewright_kernel_needs(DLDevice device, void* function, int32_t threads, uint32_t shared_bytes, TilewrightKernelNeeds* out) {
  ASK(device, kernel_needs, "account of what kernels need", function, threads, shared_bytes, out);
}

int32_t tilewright_tensor_map(DLDevice device, const TilewrightTensor* tensor, void* out) {
  ASK(device, tensor_map, "tensor maps", tensor, out);
}
