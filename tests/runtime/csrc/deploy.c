/* A program without Python: loads an exported library, makes a graph of its functions, runs it. */
#include "check.h"
#include "tilewright.h"

static const char graph_text[] =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"tvm_op\", \"name\": \"a\", \"attrs\": {\"func_name\": \"add_one\", \"num_outputs\": \"1\"}, \"inputs\": [[0, 0, 0]]},"
    "{\"op\": \"tvm_op\", \"name\": \"b\", \"attrs\": {\"func_name\": \"add_one\", \"num_outputs\": \"1\"}, \"inputs\": [[1, 0, 0]]}],"
    "\"arg_nodes\": [0], \"heads\": [[2, 0, 0]], \"node_row_ptr\": [0, 1, 2, 3],"
    "\"attrs\": {\"shape\": [\"list_shape\", [[4], [4], [4]]], \"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\"]],"
    "\"storage_id\": [\"list_int\", [0, 1, 2]]}}";

int main(int argc, char** argv) {
  CHECK(argc == 2);
  void* library = tilewright_library_open(argv[1]);
  if (library == NULL) {
    fprintf(stderr, "%s\n", tilewright_error_message());
    return 2;
  }
  CHECK(tilewright_library_function(library, "no_such_function") == NULL);
  TilewrightGraph* graph;
  CHECK(tilewright_graph_create(graph_text, sizeof graph_text - 1, tilewright_library_function, library, &graph) == 0);
  float values[4] = {1, 2, 3, 4};
  int64_t shape[1] = {4};
  DLTensor input = {values, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  CHECK(tilewright_graph_set_input(graph, 0, &input) == 0);
  CHECK(tilewright_graph_run(graph) == 0);
  TilewrightObject* output;
  CHECK(tilewright_graph_output(graph, 0, &output) == 0);
  const float* result = tilewright_tensor_dltensor(output)->data;
  for (int i = 0; i < 4; ++i) printf("%g ", result[i]);
  tilewright_object_release(output);
  tilewright_graph_release(graph);

  /* The library's errors and parallel loops use this program's runtime. */
  TilewrightObject* fail = tilewright_library_function(library, "fail");
  TVMFFIAny kind = {.type_index = TILEWRIGHT_C_STRING, .v_c_str = "KeyError"}, none = {0};
  CHECK(tilewright_function_call(fail, &kind, 1, &none) == -1);
  CHECK_TEXT(tilewright_error_kind(), "KeyError");
  tilewright_object_release(fail);
  return 0;
}
