/* Graphs of CUDA devices: the work that a thread gives to a stream, recorded, to be launched as one. */
#include <stdlib.h>

#include "cuda.h"

/* A recording, and the graph that it becomes. */
typedef struct TwCudaCapture {
  CUstream stream;  /* that the thread's work goes to meanwhile */
  CUstream before;  /* the thread's own */
  CUgraphExec graph;
  TwCudaBlock* blocks; /* memory that its kernels use, and nobody else */
} TwCudaCapture;

static _Thread_local TwCudaCapture* captures[TW_MOST_CUDA_DEVICES];

TwCudaCapture* tw_cuda_capture(int32_t device_id) { return captures[device_id]; }

void tw_cuda_capture_keep(TwCudaCapture* capture, TwCudaBlock* block) { tw_cuda_push_block(&capture->blocks, block); }

TwCudaBlock* tw_cuda_capture_take(TwCudaCapture* capture, uint64_t num_bytes) { return tw_cuda_pop_block(&capture->blocks, num_bytes); }
