#include "graph_profile.h"

#include <stdlib.h>
#include <string.h>

#include "modules.h"

#define MOST_NUMBERS ((int64_t)1 << 24)

/* The graph of the first argument, and the integers behind it; NULL with an error. */
static TilewrightGraph* take(const TVMFFIAny* args, int32_t num_args, int32_t num_integers, int64_t* integers) {
  TilewrightGraph* graph = num_args > 0 && args[0].type_index == TYPE_MODULE ? module_graph(args[0].v_obj) : NULL;
  if (graph == NULL || num_args != 1 + num_integers) {
    tw_fail("TypeError", "a graph executor and %d integers are needed", num_integers);
    return NULL;
  }
  for (int32_t i = 0; i < num_integers; ++i) {
    integers[i] = args[1 + i].v_int64;
    if (args[1 + i].type_index != TILEWRIGHT_INT || integers[i] < 0 || integers[i] > INT32_MAX) {
      tw_fail("ValueError", "argument %d is not an integer in its range", 1 + i);
      return NULL;
    }
  }
  return graph;
}

int32_t graph_node_names(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  TilewrightGraph* graph = take(args, num_args, 0, NULL);
  if (graph == NULL) return -1;
  int32_t count = tilewright_graph_num_nodes(graph);
  size_t size = 1;
  for (int32_t i = 0; i < count; ++i) size += strlen(tilewright_graph_node_name(graph, i)) + 1;
  char* names = malloc(size);
  if (names == NULL) return tw_fail("MemoryError", "no memory for the names of a graph");
  size_t at = 0;
  for (int32_t i = 0; i < count; ++i) {
    const char* name = tilewright_graph_node_name(graph, i);
    if (i > 0) names[at++] = '\n';
    memcpy(names + at, name, strlen(name));
    at += strlen(name);
  }
  int32_t status = tilewright_make_bytes(names, at, result);
  free(names);
  return status;
}

/* As many zeros; NULL with an error. */
static double* new_numbers(int64_t count) {
  double* made = count <= MOST_NUMBERS ? calloc((size_t)count + 1, sizeof *made) : NULL;
  if (made == NULL) tw_fail("MemoryError", "no memory for %lld measurements", (long long)count);
  return made;
}

int32_t graph_run_timed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  int64_t repeat;
  TilewrightGraph* graph = take(args, num_args, 1, &repeat);
  if (graph == NULL) return -1;
  if (repeat < 1) return tw_fail("ValueError", "repeat must be at least 1");
  int64_t count = tilewright_graph_num_nodes(graph);
  double* measured = new_numbers(2 * repeat * count);
  if (measured == NULL) return -1;
  int32_t status = tilewright_graph_run(graph); /* the threads are awake and the caches warm when the clock starts */
  for (int64_t i = 0; status == 0 && i < repeat; ++i) {
    double* of_run = measured + 2 * i * count;
    status = tilewright_graph_time_runs(graph, 1, of_run, of_run + count);
  }
  if (status == 0) status = tilewright_make_bytes((const char*)measured, (size_t)(2 * repeat * count) * sizeof *measured, result);
  free(measured);
  return status;
}

int32_t graph_time_node(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  int64_t given[4];
  TilewrightGraph* graph = take(args, num_args, 4, given);
  if (graph == NULL) return -1;
  if (given[1] < 1 || given[2] < 1) return tw_fail("ValueError", "number and repeat must be at least 1");
  double* seconds = new_numbers(given[2]);
  if (seconds == NULL) return -1;
  int32_t status = tilewright_graph_time_node(graph, (int32_t)given[0], (int32_t)given[1], (int32_t)given[2], (int32_t)given[3], seconds);
  if (status == 0) status = tilewright_make_bytes((const char*)seconds, (size_t)given[2] * sizeof *seconds, result);
  free(seconds);
  return status;
}
