/* The streams of the simulated CUDA devices: queues whose operations wait until somebody waits for them, so that a result
 * that is read too early is a wrong one. */
#include "mock_cuda.h"

#include <time.h>

static struct CUstream_st defaults[2] = {{.device = 0, .last = &defaults[0].first}, {.device = 1, .last = &defaults[1].first}};
static CUstream streams;
static CUstream ended; /* events may still refer to them */
static uint64_t numbers;
static int depth;
CUresult mock_lost;

/* The driver has the numbers 1 and 2 for its default streams too. */
CUstream mock_stream(int device, CUstream stream) { return (uintptr_t)stream > 2 ? stream : &defaults[device]; }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* A new operation at the end of a stream, or of the graph that it records. */
Operation* mock_give(CUstream stream) {
  Operation* operation = calloc(1, sizeof *operation);
  Operation*** last = stream->recording != NULL ? &stream->recording->last : &stream->last;
  operation->number = ++numbers;
  if (stream->recording == NULL) stream->given = operation->number;
  **last = operation;
  *last = &operation->next;
  return operation;
}

static void run_kernel(Operation* operation) {
  MockLaunch launch = {.shared = calloc(1, operation->shared_bytes + (size_t)operation->kernel->own_shared_bytes + 1)};
  _Alignas(64) char args[MOST_ARGS][MOST_ARG_BYTES];
  memcpy(args, operation->args, sizeof args);
  for (int i = 0; i < MOST_ARGS; ++i) launch.args[i] = args[i];
  memcpy(launch.grid, operation->grid, sizeof launch.grid);
  memcpy(launch.block, operation->block, sizeof launch.block);
  launch.cluster = operation->cluster;
  if (!operation->kernel->run(&launch)) mock_lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  free(launch.shared);
}

static void execute(Operation* operation) {
  if (mock_lost != CUDA_SUCCESS) return;
  if (operation->behind != NULL) mock_run_until(operation->behind, operation->until);
  if (operation->event != NULL) operation->event->milliseconds = now();
  if (operation->kernel != NULL) run_kernel(operation);
  if (operation->clears) memset(operation->to, 0, operation->num_bytes);
  if (operation->from != NULL) memmove(operation->to, operation->from, operation->num_bytes);
  for (Operation* at = operation->graph != NULL ? operation->graph->first : NULL; at != NULL; at = at->next) execute(at);
}

static void free_operation(Operation* operation) {
  free(operation->staged);
  free(operation);
}

void mock_free_operations(Operation* first) {
  while (first != NULL) {
    Operation* next = first->next;
    free_operation(first);
    first = next;
  }
}

CUresult mock_run_until(CUstream stream, uint64_t number) {
  if (stream->first == NULL || stream->first->number > number) return mock_lost;
  if (depth++ == 0) mock_open();
  while (stream->first != NULL && stream->first->number <= number) {
    Operation* operation = stream->first;
    stream->first = operation->next;
    if (stream->first == NULL) stream->last = &stream->first;
    /* The default stream is behind all blocking ones, and they behind it. */
    bool is_default = stream == &defaults[stream->device];
    if (stream->blocking) mock_run_until(&defaults[stream->device], operation->number);
    for (CUstream other = is_default ? streams : NULL; other != NULL; other = other->next) {
      if (other->blocking && other->device == stream->device) mock_run_until(other, operation->number);
    }
    execute(operation);
    stream->done = operation->number;
    free_operation(operation);
  }
  if (--depth == 0) mock_close();
  return mock_lost;
}

CUresult mock_run_all(int device) {
  mock_run_until(&defaults[device], UINT64_MAX);
  for (CUstream stream = streams; stream != NULL; stream = stream->next) {
    if (stream->device == device) mock_run_until(stream, UINT64_MAX);
  }
  return mock_lost;
}

CUstream mock_make_stream(int device, bool blocking) {
  CUstream stream = calloc(1, sizeof *stream);
  stream->device = device;
  stream->blocking = blocking;
  stream->last = &stream->first;
  stream->next = streams;
  streams = stream;
  mock_counts[STREAMS] += 1;
  return stream;
}

void mock_end_stream(CUstream stream) {
  mock_run_until(stream, UINT64_MAX);
  CUstream* place = &streams;
  while (*place != stream) place = &(*place)->next;
  *place = stream->next;
  stream->next = ended;
  ended = stream;
  mock_counts[STREAMS] -= 1;
}
