/* Copies to, from, within and between CUDA devices, and zeros. */
#include <string.h>

#include "cuda.h"

/* One piece of the staging memory: large enough for the full speed of the bus, small enough to stay in a cache. */
#define PIECE_BYTES ((uint64_t)4 << 20)

/* Below this the driver's own staging is as good. */
#define LEAST_STAGED_BYTES ((uint64_t)256 << 10)

int32_t tw_cuda_can_copy(DLDevice from, DLDevice to) {
  bool own_from = from.device_type == kDLCUDA, own_to = to.device_type == kDLCUDA;
  return (own_from || tw_host_reads(from)) && (own_to || tw_host_reads(to));
}

/* True for memory of the host that the device reads and writes by itself. */
static bool is_pinned(const void* pointer) {
  /* The function for several attributes calls memory that the driver does not know no error. */
  unsigned int type = 0;
  void* data[] = {&type};
  const int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  return tw_cu.PointerGetAttributes(1, attributes, data, (CUdeviceptr)(uintptr_t)pointer) == CUDA_SUCCESS && type != 0;
}

/* Makes the staging memory unless it is there; false where the system refuses it. The lock is held. */
static bool open_stage(TwCudaStage* stage) {
  for (int i = 0; i < 2; ++i) {
    if (stage->memory[i] == NULL && tw_cu.MemHostAlloc(&stage->memory[i], PIECE_BYTES, 0) != CUDA_SUCCESS) {
      stage->memory[i] = NULL;
      return false;
    }
    if (stage->passed[i] == NULL && tw_cu.EventCreate(&stage->passed[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return false;
  }
  return true;
}

static uint64_t piece_at(uint64_t done, uint64_t num_bytes) { return num_bytes - done < PIECE_BYTES ? num_bytes - done : PIECE_BYTES; }

/* While one piece is on its way to the device, the next is brought into the other. */
static CUresult stage_to_device(TwCudaStage* stage, CUdeviceptr to, const char* from, uint64_t num_bytes, CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  for (uint64_t done = 0, i = 0; done < num_bytes && result == CUDA_SUCCESS; done += PIECE_BYTES, ++i) {
    uint64_t part = piece_at(done, num_bytes);
    result = tw_cu.EventSynchronize(stage->passed[i % 2]); /* at once for an event that was never recorded */
    if (result != CUDA_SUCCESS) break;
    memcpy(stage->memory[i % 2], from + done, (size_t)part);
    result = tw_cu.MemcpyHtoDAsync(to + done, stage->memory[i % 2], (size_t)part, stream);
    if (result == CUDA_SUCCESS) result = tw_cu.EventRecord(stage->passed[i % 2], stream);
  }
  return result;
}

static CUresult fetch_piece(TwCudaStage* stage, uint64_t i, CUdeviceptr from, uint64_t num_bytes, CUstream stream) {
  CUresult result = tw_cu.EventSynchronize(stage->passed[i % 2]);
  if (result == CUDA_SUCCESS) {
    result = tw_cu.MemcpyDtoHAsync(stage->memory[i % 2], from + i * PIECE_BYTES, (size_t)piece_at(i * PIECE_BYTES, num_bytes), stream);
  }
  return result == CUDA_SUCCESS ? tw_cu.EventRecord(stage->passed[i % 2], stream) : result;
}

static CUresult stage_to_host(TwCudaStage* stage, char* to, CUdeviceptr from, uint64_t num_bytes, CUstream stream) {
  uint64_t pieces = (num_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
  CUresult result = fetch_piece(stage, 0, from, num_bytes, stream);
  for (uint64_t i = 0; i < pieces && result == CUDA_SUCCESS; ++i) {
    if (i + 1 < pieces) result = fetch_piece(stage, i + 1, from, num_bytes, stream);
    if (result == CUDA_SUCCESS) result = tw_cu.EventSynchronize(stage->passed[i % 2]);
    if (result == CUDA_SUCCESS) memcpy(to + i * PIECE_BYTES, stage->memory[i % 2], (size_t)piece_at(i * PIECE_BYTES, num_bytes));
  }
  return result;
}

/* Copies between the host and the device; the memory of the host may be used when this returns. */
static int32_t copy_host(int32_t device_id, TwCudaDevice* device, const char* from, char* to, bool to_device, uint64_t num_bytes,
                         CUstream stream) {
  if (tw_cuda_capture(device_id) != NULL) {
    return tw_fail("RuntimeError", "a graph of cuda(%d) cannot hold a copy to or from the memory of the host", (int)device_id);
  }
  CUdeviceptr target = (CUdeviceptr)(uintptr_t)to, source = (CUdeviceptr)(uintptr_t)from;
  bool pinned = is_pinned(to_device ? from : to);
  CUresult result;
  bool staged = false;
  if (!pinned && num_bytes >= LEAST_STAGED_BYTES) {
    tw_mutex_lock(&device->stage.lock);
    staged = open_stage(&device->stage);
    if (staged) {
      result = to_device ? stage_to_device(&device->stage, target, from, num_bytes, stream)
                         : stage_to_host(&device->stage, to, source, num_bytes, stream);
    }
    tw_mutex_unlock(&device->stage.lock);
  }
  if (!staged) {
    /* Of pageable memory the driver has read all when it returns from a copy to the device. */
    result = to_device ? tw_cu.MemcpyHtoDAsync(target, from, (size_t)num_bytes, stream)
                       : tw_cu.MemcpyDtoHAsync(to, source, (size_t)num_bytes, stream);
    if (result == CUDA_SUCCESS && (pinned || !to_device)) result = tw_cu.StreamSynchronize(stream);
  }
  if (result == CUDA_SUCCESS) return 0;
  return tw_cuda_fail(device_id, result, to_device ? "copy memory from the host" : "copy memory to the host");
}

/* Has the multiprocessors of one device reach the other's memory, where the machine can; copies are quicker then. */
static void allow_peer(TwCudaDevice* device, TwCudaDevice* peer) {
  int can = 0;
  if (tw_cu.DeviceCanAccessPeer(&can, device->device, peer->device) == CUDA_SUCCESS && can) {
    tw_cu.CtxEnablePeerAccess(atomic_load(&peer->context), 0); /* an error if it is allowed already */
  }
}

/* Copies between two devices: behind what the source's stream was given, and before what it is given next. */
static int32_t copy_peer(int32_t from_id, int32_t to_id, CUdeviceptr source, CUdeviceptr target, uint64_t num_bytes, void* stream) {
  TwCudaDevice* from = tw_cuda_enter(from_id);
  TwCudaDevice* to = from == NULL ? NULL : tw_cuda_enter(to_id);
  if (to == NULL) return -1;
  allow_peer(to, from);
  CUstream reads = tw_cuda_stream(from_id, NULL), copies = tw_cuda_stream(to_id, stream);
  CUresult result = tw_cuda_wait_for(to, copies, from, reads);
  if (result == CUDA_SUCCESS) {
    result = tw_cu.MemcpyPeerAsync(target, atomic_load(&to->context), source, atomic_load(&from->context), (size_t)num_bytes, copies);
  }
  if (result == CUDA_SUCCESS) result = tw_cu.CtxSetCurrent(atomic_load(&from->context));
  if (result == CUDA_SUCCESS) result = tw_cuda_wait_for(from, reads, to, copies);
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(to_id, result, "copy memory from another device");
}

int32_t tw_cuda_copy(const void* from, uint64_t from_offset, DLDevice from_device, void* to, uint64_t to_offset, DLDevice to_device,
                     uint64_t num_bytes, void* stream) {
  const char* source = (const char*)from + from_offset;
  char* target = (char*)to + to_offset;
  bool own_from = from_device.device_type == kDLCUDA, own_to = to_device.device_type == kDLCUDA;
  if (own_from && own_to && from_device.device_id != to_device.device_id) {
    return copy_peer(from_device.device_id, to_device.device_id, (CUdeviceptr)(uintptr_t)source, (CUdeviceptr)(uintptr_t)target,
                     num_bytes, stream);
  }
  int32_t device_id = own_to ? to_device.device_id : from_device.device_id;
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  CUstream order = tw_cuda_stream(device_id, stream);
  if (own_from != own_to) return copy_host(device_id, device, source, target, own_to, num_bytes, order);
  CUresult result = tw_cu.MemcpyDtoDAsync((CUdeviceptr)(uintptr_t)target, (CUdeviceptr)(uintptr_t)source, (size_t)num_bytes, order);
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "copy memory");
}

int32_t tw_cuda_clear(int32_t device_id, void* pointer, uint64_t num_bytes, void* stream) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUresult result =
      tw_cu.MemsetD8Async((CUdeviceptr)(uintptr_t)pointer, 0, (size_t)num_bytes, tw_cuda_stream(device_id, stream));
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "clear memory");
}
