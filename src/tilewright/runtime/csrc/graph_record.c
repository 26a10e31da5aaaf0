/* A graph whose tensors are all on one device that can record: its runs become one launch.
 *
 * The first run is a plain one: it loads code, and finds out what there is to find out. The second is recorded, and launched
 * with all that follow, until the memory of an input changes. What cannot be recorded runs as it always did. */
#include "graph.h"

bool tw_graph_can_record(const TilewrightGraph* graph) {
  return graph->num_arenas == 1 && !tw_host_reads(graph->arenas[0].device) && tw_device_records(graph->arenas[0].device);
}

void tw_graph_forget_recording(TilewrightGraph* graph) {
  graph->steady_runs = 0;
  if (graph->recording == NULL) return;
  const TilewrightDeviceTable* table = tilewright_device_table(graph->arenas[0].device.device_type);
  table->recording_free(graph->arenas[0].device.device_id, graph->recording);
  graph->recording = NULL;
}

/* Records the nodes' work, which is not done by that. */
static int32_t record(TilewrightGraph* graph, int32_t (*run)(TilewrightGraph* graph)) {
  DLDevice device = graph->arenas[0].device;
  if (tilewright_record_begin(device) != 0) return -1;
  if (run(graph) == 0) return tilewright_record_end(device, &graph->recording);
  TwError error = tw_error_take();
  tilewright_record_end(device, NULL);
  tw_error_give(error);
  return -1;
}

int32_t tw_graph_record(TilewrightGraph* graph, int32_t (*run)(TilewrightGraph* graph)) {
  if (graph->recording != NULL) return 0;
  if (!tw_graph_can_record(graph)) {
    return tw_fail("ValueError", "a graph can be recorded if all its tensors are on one device that can record, such as a GPU");
  }
  return run(graph) != 0 ? -1 : record(graph, run);
}

int32_t tw_graph_run(TilewrightGraph* graph, int32_t (*run)(TilewrightGraph* graph)) {
  if (graph->recording == NULL && graph->records && graph->steady_runs > 0 && !tw_is_recording()) {
    graph->records = tw_graph_can_record(graph) && record(graph, run) == 0;
    if (!graph->records) tilewright_clear_error(); /* it runs all the same */
  }
  if (graph->recording != NULL) return tilewright_recording_launch(graph->arenas[0].device, graph->recording, NULL);
  int32_t status = run(graph);
  if (status == 0) graph->steady_runs = 1;
  return status;
}
