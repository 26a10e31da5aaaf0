/* Recordings of CUDA devices: what a thread gives to a device, captured from a stream of its own as a graph of the driver's. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

struct TwCudaCapture {
  CUstream stream; /* that the thread's work goes to meanwhile */
  CUstream before; /* the thread's own */
  CUgraphExec graph;
  const char* last_kernel; /* for the error of one that crashes */
  TwCudaBlock* blocks;     /* memory that its kernels use, and nobody else */
};

static _Thread_local TwCudaCapture* captures[TW_MOST_CUDA_DEVICES];

TwCudaCapture* tw_cuda_capture(int32_t device_id) { return captures[device_id]; }

void tw_cuda_capture_keep(TwCudaCapture* capture, TwCudaBlock* block) { tw_cuda_push_block(&capture->blocks, block); }

TwCudaBlock* tw_cuda_capture_take(TwCudaCapture* capture, uint64_t num_bytes) { return tw_cuda_pop_block(&capture->blocks, num_bytes); }

static bool has_graphs(void) {
  return tw_cu.StreamBeginCapture != NULL && tw_cu.StreamEndCapture != NULL && tw_cu.GraphInstantiate != NULL && tw_cu.GraphDestroy != NULL &&
         tw_cu.GraphLaunch != NULL && tw_cu.GraphExecDestroy != NULL;
}

int32_t tw_cuda_record_begin(int32_t device_id) {
  if (tw_cuda_enter(device_id) == NULL) return -1;
  if (!has_graphs()) return tw_fail("RuntimeError", "the driver of cuda(%d) has no graphs: it is older than CUDA 11.4", (int)device_id);
  if (captures[device_id] != NULL) return tw_fail("RuntimeError", "this thread records work of cuda(%d) already", (int)device_id);
  TwCudaCapture* capture = calloc(1, sizeof *capture);
  if (capture == NULL) return tw_fail("MemoryError", "no memory for a recording");
  capture->before = tw_cuda_stream(device_id, NULL);
  /* A stream that neither waits for the default one nor is waited for: other threads' work goes on beside it. */
  CUresult result = tw_cu.StreamCreate(&capture->stream, CU_STREAM_NON_BLOCKING);
  if (result == CUDA_SUCCESS) {
    result = tw_cu.StreamBeginCapture(capture->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (result != CUDA_SUCCESS) tw_cu.StreamDestroy(capture->stream);
  }
  if (result != CUDA_SUCCESS) {
    free(capture);
    return tw_cuda_fail(device_id, result, "record its work");
  }
  captures[device_id] = capture;
  return tw_cuda_stream_set(device_id, capture->stream);
}

/* Gives a capture's memory back, once the device uses it no more. */
static void free_capture(TwCudaDevice* device, TwCudaCapture* capture) {
  if (capture->blocks != NULL) {
    tw_cu.CtxSynchronize();
    tw_cuda_release_blocks(device, capture->blocks);
  }
  free(capture);
}

static const char* name_after(const char* kernel) {
  char text[256];
  snprintf(text, sizeof text, "one of a recording that ends with %.200s", kernel != NULL ? kernel : "a copy");
  return tw_cuda_intern(text);
}

int32_t tw_cuda_record_end(int32_t device_id, void** out) {
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  TwCudaCapture* capture = captures[device_id];
  if (capture == NULL) return tw_fail("RuntimeError", "this thread records no work of cuda(%d)", (int)device_id);
  captures[device_id] = NULL;
  tw_cuda_stream_set(device_id, capture->before);
  CUgraph graph = NULL;
  CUresult result = tw_cu.StreamEndCapture(capture->stream, &graph);
  if (out != NULL && result == CUDA_SUCCESS) result = tw_cu.GraphInstantiate(&capture->graph, graph, 0);
  if (graph != NULL) tw_cu.GraphDestroy(graph);
  tw_cu.StreamDestroy(capture->stream);
  if (out != NULL && result == CUDA_SUCCESS) {
    capture->last_kernel = name_after(atomic_load(&device->last_kernel));
    *out = capture;
    return 0;
  }
  free_capture(device, capture);
  return out == NULL ? 0 : tw_cuda_fail(device_id, result, "record its work");
}

int32_t tw_cuda_recording_launch(int32_t device_id, void* recording, void* stream) {
  TwCudaCapture* capture = recording;
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  CUresult result = tw_cu.GraphLaunch(capture->graph, tw_cuda_stream(device_id, stream));
  if (result != CUDA_SUCCESS) return tw_cuda_fail(device_id, result, "launch a recording");
  atomic_store_explicit(&device->last_kernel, capture->last_kernel, memory_order_relaxed);
  return 0;
}

int32_t tw_cuda_recording_free(int32_t device_id, void* recording) {
  TwCudaDevice* device = tw_cuda_enter(device_id);
  if (device == NULL) return -1;
  if (recording == NULL) return 0;
  TwCudaCapture* capture = recording;
  CUresult result = tw_cu.GraphExecDestroy(capture->graph);
  free_capture(device, capture);
  return result == CUDA_SUCCESS ? 0 : tw_cuda_fail(device_id, result, "end a recording");
}
