/* The time of every node of a graph: by the host's clock, or by events of the device that does all the work. */
#include "graph.h"

/* Nodes that are given to a device at a time. */
#define CHUNK 16

/* Memory that is cleared to keep a device at work while nodes are given to it: a node whose predecessor has ended before it was
   launched would seem to take as long as its launch. */
#define BUSY_BYTES ((uint64_t)64 << 20)

typedef struct {
  DLDevice device;
  void* starts[CHUNK];
  void* ends[CHUNK];
  void* memory;
  double clear_seconds;  /* of one clearing of the memory */
  double launch_seconds; /* of giving one node to the device */
} Clock;

static int32_t elapsed(DLDevice device, void* start, void* end, double* seconds) {
  double milliseconds;
  if (tilewright_event_elapsed(device, start, end, &milliseconds) != 0) return -1;
  *seconds = milliseconds * 1e-3;
  return 0;
}

static void free_clock(const Clock* clock) {
  for (int32_t i = 0; i < CHUNK; ++i) {
    if (clock->starts[i] != NULL) tilewright_event_free(clock->device, clock->starts[i]);
    if (clock->ends[i] != NULL) tilewright_event_free(clock->device, clock->ends[i]);
  }
  tw_device_free(clock->device, clock->memory);
}

static int32_t make_clock(DLDevice device, Clock* clock) {
  *clock = (Clock){.device = device, .launch_seconds = 1e-5};
  for (int32_t i = 0; i < CHUNK; ++i) {
    if (tilewright_event_create(device, &clock->starts[i]) != 0 || tilewright_event_create(device, &clock->ends[i]) != 0) return -1;
  }
  if (tw_device_alloc(device, BUSY_BYTES, &clock->memory) != 0 || tw_device_clear(device, clock->memory, BUSY_BYTES) != 0) return -1;
  void *start = clock->starts[0], *end = clock->ends[0];
  if (tilewright_event_record(device, start, NULL) != 0 || tw_device_clear(device, clock->memory, BUSY_BYTES) != 0 ||
      tilewright_event_record(device, end, NULL) != 0 || tilewright_event_sync(device, end) != 0) {
    return -1;
  }
  return elapsed(device, start, end, &clock->clear_seconds);
}

/* Work for the device that lasts about twice as long as giving it `count` nodes. */
static int32_t keep_busy(const Clock* clock, int32_t count) {
  double wanted = 2 * count * clock->launch_seconds;
  for (double given = 0; given < wanted; given += clock->clear_seconds > 1e-6 ? clock->clear_seconds : 1e-6) {
    if (tw_device_clear(clock->device, clock->memory, BUSY_BYTES) != 0) return -1;
  }
  return 0;
}

/* Times some nodes that have something to run. */
static int32_t time_chunk(Clock* clock, const TilewrightGraph* graph, const int32_t* nodes, int32_t count, double* seconds) {
  if (keep_busy(clock, count) != 0) return -1;
  uint64_t begin = tw_now_nanoseconds();
  for (int32_t i = 0; i < count; ++i) {
    if (tilewright_event_record(clock->device, clock->starts[i], NULL) != 0 || tw_graph_run_node(&graph->nodes[nodes[i]]) != 0 ||
        tilewright_event_record(clock->device, clock->ends[i], NULL) != 0) {
      return -1;
    }
  }
  clock->launch_seconds = (double)(tw_now_nanoseconds() - begin) * 1e-9 / count;
  if (tilewright_event_sync(clock->device, clock->ends[count - 1]) != 0) return -1;
  for (int32_t i = 0; i < count; ++i) {
    if (elapsed(clock->device, clock->starts[i], clock->ends[i], &seconds[nodes[i]]) != 0) return -1;
  }
  return 0;
}

static int32_t time_run(Clock* clock, const TilewrightGraph* graph, double* begins, double* seconds) {
  int32_t nodes[CHUNK], count = 0;
  for (int32_t i = 0; i < graph->num_nodes; ++i) {
    seconds[i] = 0;
    if (graph->nodes[i].function != NULL) nodes[count++] = i;
    if (count > 0 && (count == CHUNK || i + 1 == graph->num_nodes)) {
      if (time_chunk(clock, graph, nodes, count, seconds) != 0) return -1;
      count = 0;
    }
  }
  double begin = 0;
  for (int32_t i = 0; i < graph->num_nodes; begin += seconds[i++]) begins[i] = begin;
  return 0;
}

static int32_t time_by_events(const TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  Clock clock;
  int32_t status = make_clock(graph->arenas[0].device, &clock);
  for (int32_t run = 0; status == 0 && run < repeat; ++run, begins += graph->num_nodes, seconds += graph->num_nodes) {
    status = time_run(&clock, graph, begins, seconds);
  }
  free_clock(&clock);
  return status;
}

static int32_t time_by_host(const TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  for (int32_t run = 0; run < repeat; ++run) {
    uint64_t start = tw_now_nanoseconds();
    for (int32_t i = 0; i < graph->num_nodes; ++i, ++begins, ++seconds) {
      uint64_t begin = tw_now_nanoseconds();
      if (graph->nodes[i].function != NULL && (tw_graph_run_node(&graph->nodes[i]) != 0 || tw_graph_wait(graph) != 0)) return -1;
      *begins = (double)(begin - start) * 1e-9;
      *seconds = graph->nodes[i].function != NULL ? (double)(tw_now_nanoseconds() - begin) * 1e-9 : 0;
    }
  }
  return 0;
}

int32_t tw_graph_time_runs(const TilewrightGraph* graph, int32_t repeat, double* begins, double* seconds) {
  if (tw_graph_wait(graph) != 0) return -1;
  bool by_events = graph->num_arenas == 1 && tw_device_has_events(graph->arenas[0].device);
  return by_events ? time_by_events(graph, repeat, begins, seconds) : time_by_host(graph, repeat, begins, seconds);
}
