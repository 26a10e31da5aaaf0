/* What the files of the simulated CUDA driver share. */
#ifndef MOCK_CUDA_H_
#define MOCK_CUDA_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_driver.h"

#define EXPORTED __attribute__((visibility("default")))
#define MOST_ARGS 16
#define MOST_ARG_BYTES 128

/* What `mock_cuda_count` tells. */
enum {
  ALLOCATIONS, /* in use, of the driver's memory */
  BYTES,
  STREAMS,
  EVENTS,
  MODULES,
  GRAPHS,
  ALLOCATED, /* calls so far */
  LAUNCHES,
  GRAPH_LAUNCHES,
  WAITS,
  ENCODED,
  CLUSTER, /* blocks of the last launch's cluster */
  OVERLAPS, /* launches that may begin before the one before has ended */
  PEERS,
  SYNCS,
  NUM_COUNTS
};

typedef struct {
  void* args[MOST_ARGS];
  unsigned int grid[3], block[3], cluster; /* blocks of a cluster */
  void* shared;
} MockLaunch;

/* A kernel that the driver finds in every module that names it: its parameters' sizes, and what it does; false: it crashes. */
typedef struct {
  const char* name;
  int sizes[MOST_ARGS]; /* up to a zero */
  int own_shared_bytes, registers;
  bool (*run)(const MockLaunch* launch);
} MockKernel;

extern const MockKernel mock_kernels[];

/* An operation that waits in a stream, or is recorded in a graph. */
typedef struct Operation {
  struct Operation* next;
  uint64_t number; /* operations are numbered in the order in which they were given */
  const char* from;
  char* to;
  char* staged; /* the bytes of pageable memory, read when the copy was asked for */
  uint64_t num_bytes;
  bool clears;
  const MockKernel* kernel;
  char args[MOST_ARGS][MOST_ARG_BYTES];
  unsigned int grid[3], block[3], shared_bytes, cluster;
  struct CUevent_st* event; /* to be passed */
  struct CUstream_st* behind; /* waits for this stream, up to its operation of `until` */
  uint64_t until;
  struct CUgraphExec_st* graph;
} Operation;

struct CUctx_st {
  int device;
};

struct CUgraph_st {
  Operation* first;
  Operation** last;
  bool broken;
};

struct CUgraphExec_st {
  Operation* first;
};

struct CUstream_st {
  struct CUstream_st* next;
  int device;
  bool blocking; /* waits for the default stream, and that for it */
  Operation* first;
  Operation** last;
  uint64_t given, done; /* the numbers of the last operations */
  CUgraph recording;
};

struct CUevent_st {
  int device;
  CUstream stream; /* where it was last recorded; NULL: nowhere */
  uint64_t number;
  double milliseconds;
};

extern pthread_mutex_t mock_lock; /* of everything */
extern int64_t mock_counts[NUM_COUNTS];

/* ---- mock_cuda_memory.c ---- */
CUresult mock_allocate(int device, uint64_t num_bytes, CUdeviceptr* out);
CUresult mock_release(CUdeviceptr pointer);
bool mock_is_device(const void* pointer);
bool mock_is_pinned(const void* pointer);
void mock_memory_info(int device, size_t* free_bytes, size_t* total);

/* Opens the memory of all devices for what runs on one, and closes it again. */
void mock_open(void);
void mock_close(void);

/* ---- mock_cuda_queue.c ---- */
CUstream mock_stream(int device, CUstream stream); /* the default one for NULL */
CUstream mock_make_stream(int device, bool blocking);
void mock_end_stream(CUstream stream);
Operation* mock_give(CUstream stream);
CUresult mock_run_until(CUstream stream, uint64_t number); /* the error of a device that is lost, or success */
CUresult mock_run_all(int device);
void mock_free_operations(Operation* first);

/* ---- mock_cuda.c ---- */
/* True if the test wants this call of a function to fail, and with what. */
bool mock_injected(const char* function, CUresult* result);

/* The device of the calling thread's context; -1 without one. */
int mock_current_device(void);

/* The error that all calls of a lost device give; 0 for one that is well. */
extern CUresult mock_lost;

#endif
