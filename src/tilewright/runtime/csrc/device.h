/* Devices as the runtime's other files use them. Internal to the runtime. */
#ifndef TILEWRIGHT_DEVICE_H_
#define TILEWRIGHT_DEVICE_H_

#include "internal.h"

/* The processor that this code runs on, whose memory `tw_aligned_alloc` gives. */
#define TW_HOST ((DLDevice){kDLCPU, 0})
static inline bool tw_is_host(DLDevice device) { return device.device_type == kDLCPU; }

/* The processor's own table, which is there from the start; see cpu_device.c. */
extern const TilewrightDeviceTable tw_cpu_device;
extern const TilewrightDeviceTable tw_pinned_device;

/* NVIDIA's GPUs, of which there are none where the system has no driver for them; see cuda.c. */
extern const TilewrightDeviceTable tw_cuda_table;

/* The same device: of one kind and, but for the host, of one number. */
static inline bool tw_same_device(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && (a.device_id == b.device_id || tw_is_host(a));
}

/* True where host code may read and write the device's memory at any time: no copy, and no waiting. */
static inline bool tw_host_reads(DLDevice device) {
  if (tw_is_host(device)) return true;
  uint32_t flags = tilewright_device_flags(device.device_type);
  return (flags & (TILEWRIGHT_DEVICE_HOST_READS | TILEWRIGHT_DEVICE_ASYNCHRONOUS)) == TILEWRIGHT_DEVICE_HOST_READS;
}

/* "cuda(1)", for a message; it stands in the caller's memory. */
typedef struct {
  char text[64];
} TwDeviceName;
const char* tw_device_name(TwDeviceName* name, DLDevice device);

/* Memory aligned to TW_ALIGNMENT. */
int32_t tw_device_alloc(DLDevice device, uint64_t num_bytes, void** out);

/* Frees it; NULL is fine. For the end of an object: whatever the driver says of it is not an error of the caller's. */
void tw_device_free(DLDevice device, void* pointer);

/* Fills memory with zeros. */
int32_t tw_device_clear(DLDevice device, void* pointer, uint64_t num_bytes);

/* Waits for what the calling thread has given to the device, if it may not be done yet. */
int32_t tw_device_wait(DLDevice device);

/* True if the device has clocks of its own: events that can be recorded and compared. */
bool tw_device_has_events(DLDevice device);

/* True if what a thread gives to the device can be recorded. */
bool tw_device_records(DLDevice device);

/* True while the calling thread records, on any device: only work of devices may be done, which the recording will repeat. */
bool tw_is_recording(void);

#endif
