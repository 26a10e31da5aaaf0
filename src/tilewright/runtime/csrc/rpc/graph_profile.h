/* What a profiler asks of a graph executor, as functions that take and return what travels. */
#ifndef TILEWRIGHT_RPC_GRAPH_PROFILE_H_
#define TILEWRIGHT_RPC_GRAPH_PROFILE_H_

#include "../internal.h"

/* The names of an executor's nodes, one a line. */
int32_t graph_node_names(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Executor, repeat: for each run, when every node began and how many seconds it took, as doubles. */
int32_t graph_run_timed(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Executor, node, number, repeat, min_repeat_ms: the seconds of each repeat of one node, as doubles. */
int32_t graph_time_node(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

#endif
