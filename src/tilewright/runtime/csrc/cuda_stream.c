/* Streams and events of CUDA devices. A stream is the driver's own handle, so that other libraries can be given ours, and
 * we theirs. The default is the one that PyTorch uses too; streams that are made here wait for it, and it for them. */
#include "cuda.h"

static _Thread_local CUstream current_streams[TW_MOST_CUDA_DEVICES];

CUstream tw_cuda_stream(int32_t device_id, void* stream) { return stream != NULL ? (CUstream)stream : current_streams[device_id]; }

int32_t tw_cuda_stream_create(int32_t device_id, void** out) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUstream stream = NULL;
  CUresult result = tw_cu.StreamCreate(&stream, CU_STREAM_DEFAULT);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "make a stream");
  *out = stream;
  return 0;
}

int32_t tw_cuda_stream_free(int32_t device_id, void* stream) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  if (stream == NULL) return 0;
  if (current_streams[device_id] == (CUstream)stream) current_streams[device_id] = NULL;
  /* Memory that was freed in it must be at rest: another stream may have the same handle soon. */
  CUresult result = tw_cu.StreamSynchronize((CUstream)stream);
  CUresult destroyed = tw_cu.StreamDestroy((CUstream)stream);
  if (result == CUDA_SUCCESS) result = destroyed;
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "end a stream");
}

int32_t tw_cuda_stream_set(int32_t device_id, void* stream) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  current_streams[device_id] = stream;
  return 0;
}

int32_t tw_cuda_stream_current(int32_t device_id, void** out) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  *out = current_streams[device_id];
  return 0;
}

int32_t tw_cuda_stream_sync(int32_t device_id, void* stream) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUresult result = tw_cu.StreamSynchronize(tw_cuda_stream(device_id, stream));
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "finish its work");
}

CUresult tw_cuda_wait_for(TwCudaDevice* device, CUstream stream, TwCudaDevice* other_device, CUstream other) {
  if (device == other_device && stream == other) return CUDA_SUCCESS;
  CUcontext context = atomic_load(&device->context), other_context = atomic_load(&other_device->context);
  TwCudaPool* pool = &other_device->pool;
  CUresult result = context == other_context ? CUDA_SUCCESS : tw_cu.CtxSetCurrent(other_context);
  if (result != CUDA_SUCCESS) return result;
  tw_mutex_lock(&pool->lock);
  CUevent event = tw_cuda_take_event(pool);
  tw_mutex_unlock(&pool->lock);
  result = event == NULL ? CUDA_ERROR_OUT_OF_MEMORY : tw_cu.EventRecord(event, other);
  CUresult back = context == other_context ? CUDA_SUCCESS : tw_cu.CtxSetCurrent(context);
  if (result == CUDA_SUCCESS) result = back;
  if (result == CUDA_SUCCESS) result = tw_cu.StreamWaitEvent(stream, event, 0);
  tw_mutex_lock(&pool->lock);
  tw_cuda_give_event(pool, event); /* the wait is for what it stood for when it was given, whatever it is used for next */
  tw_mutex_unlock(&pool->lock);
  return result;
}

int32_t tw_cuda_stream_wait(int32_t device_id, void* stream, void* other) {
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  CUresult result =
      tw_cuda_wait_for(device, tw_cuda_stream(device_id, stream), device, tw_cuda_stream(device_id, other));
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "order two streams");
}

/* ---- events ---- */
int32_t tw_cuda_event_create(int32_t device_id, void** out) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUevent event = NULL;
  CUresult result = tw_cu.EventCreate(&event, CU_EVENT_DEFAULT);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "make an event");
  *out = event;
  return 0;
}

int32_t tw_cuda_event_free(int32_t device_id, void* event) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUresult result = event == NULL ? CUDA_SUCCESS : tw_cu.EventDestroy(event);
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "end an event");
}

int32_t tw_cuda_event_record(int32_t device_id, void* event, void* stream) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUresult result = tw_cu.EventRecord(event, tw_cuda_stream(device_id, stream));
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "record an event");
}

int32_t tw_cuda_event_sync(int32_t device_id, void* event) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  CUresult result = tw_cu.EventSynchronize(event);
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "reach an event");
}

int32_t tw_cuda_event_elapsed(int32_t device_id, void* start, void* end, double* milliseconds) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  float between = 0;
  CUresult result = tw_cu.EventElapsedTime(&between, start, end);
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "compare two events");
  *milliseconds = between;
  return 0;
}
