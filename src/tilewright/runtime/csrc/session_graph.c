/* Sessions of models for the graph executor. Stored are the size of a description in JSON, the description with the graph
 * in it, and the parameters, as graph_factory.py writes them. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "session.h"

static int32_t damaged(void) { return tw_fail("ValueError", "the model in the library is damaged"); }

static int32_t mark_parameter(void* context, const char* name, const DLTensor* unused) {
  (void)unused;
  TilewrightSession* session = context;
  int32_t index = tilewright_graph_input_index(session->graph, name);
  if (index >= 0) session->graph_inputs[index] = -1;
  return 0;
}

static TilewrightTensorInfo info_of(const TilewrightGraph* graph, int32_t entry, const char* name) {
  const DLTensor* tensor = &graph->entries[entry].tensor;
  return (TilewrightTensorInfo){name, tensor->dtype, tensor->ndim, tensor->shape};
}

/* The inputs that are not parameters, and the outputs. */
static int32_t describe(TilewrightSession* session, const char* params, size_t size) {
  const TilewrightGraph* graph = session->graph;
  session->graph_inputs = calloc((size_t)graph->num_inputs + 1, sizeof *session->graph_inputs);
  if (session->graph_inputs == NULL) return tw_fail("MemoryError", "no memory for a session");
  if (tw_for_each_param(params, size, mark_parameter, session) != 0) return -1;
  int32_t count = 0;
  for (int32_t i = 0; i < graph->num_inputs; ++i) {
    if (session->graph_inputs[i] == 0) session->graph_inputs[count++] = i;
  }
  if (tw_session_allocate(session, count, graph->num_outputs) != 0) return -1;
  for (int32_t i = 0; i < count; ++i) {
    const TwGraphNode* node = &graph->nodes[graph->inputs[session->graph_inputs[i]]];
    session->inputs[i] = info_of(graph, node->first_entry, node->name);
  }
  for (int32_t i = 0; i < graph->num_outputs; ++i) session->outputs[i] = info_of(graph, graph->outputs[i], graph->output_names[i]);
  return 0;
}

static int32_t open_graph(TilewrightSession* session, TilewrightSession* shared) {
  uint64_t head_size;
  if (session->size < sizeof head_size) return damaged();
  memcpy(&head_size, session->content, sizeof head_size);
  if (head_size > session->size - sizeof head_size) return damaged();
  const char* head = session->content + sizeof head_size;
  TwJsonDocument document;
  if (!tw_json_parse(head, (size_t)head_size, &document)) return -1;
  const TwJson* graph = tw_json_member(document.root, "graph");
  int32_t status = graph == NULL || graph->kind != JSON_STRING
                       ? damaged()
                       : tilewright_graph_create_on(graph->text, strlen(graph->text), tilewright_library_function, session->library,
                                                    session->devices, session->num_devices, &session->graph);
  tw_json_free(&document);
  if (status != 0) return -1;
  const char* params = head + head_size;
  size_t size = (size_t)(session->size - sizeof head_size - head_size);
  status = shared != NULL ? tilewright_graph_share_params(session->graph, shared->graph, params, size)
                          : tilewright_graph_load_params(session->graph, params, size);
  return status == 0 ? describe(session, params, size) : -1;
}

static int32_t set(TilewrightSession* session, int32_t input, const DLTensor* from) {
  return tilewright_graph_set_input(session->graph, session->graph_inputs[input], from);
}

static int32_t run(TilewrightSession* session) { return tilewright_graph_run(session->graph); }

static int32_t output(TilewrightSession* session, int32_t index, TilewrightObject** out) {
  return tilewright_graph_output(session->graph, index, out);
}

static void close_graph(TilewrightSession* session) { tilewright_graph_release(session->graph); }

const TwSessionKind tw_graph_session = {"GraphExecutorFactory", open_graph, set, run, output, close_graph};
