/* Runs the model of make_model.py from C.   ./main FOLDER */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tilewright.h"

enum { ROWS = 4, FEATURES = 64, CLASSES = 10 };
#define TOLERANCE 1e-5

/* Ends the program with the runtime's error, unless the status is 0. */
static void check(int32_t status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", tilewright_error_kind(), tilewright_error_message());
  exit(2);
}

/* The content of a file, to be freed. Ends the program where there is none. */
static char* read_file(const char* folder, const char* name, size_t* size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  long end = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  char* content = end >= 0 ? malloc((size_t)end + 1) : NULL;
  if (content != NULL) rewind(file);
  if (content == NULL || fread(content, 1, (size_t)end, file) != (size_t)end) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  fclose(file);
  *size = (size_t)end;
  return content;
}

static float* read_floats(const char* folder, const char* name, size_t count) {
  size_t size;
  char* content = read_file(folder, name, &size);
  if (size == count * sizeof(float)) return (float*)content;
  fprintf(stderr, "%s should hold %zu numbers\n", name, count);
  exit(2);
}

/* Prints what the model says; false if it is not what is expected. */
static int report(const float* values, const float* expected) {
  int is_close = 1;
  double most = 0;
  printf("prediction:");
  for (int row = 0; row < ROWS; ++row) {
    int best = row * CLASSES;
    for (int i = row * CLASSES; i < (row + 1) * CLASSES; ++i) {
      double difference = fabs((double)values[i] - (double)expected[i]);
      is_close &= difference <= TOLERANCE; /* not true of NaN either */
      if (difference > most) most = difference;
      if (values[i] > values[best]) best = i;
    }
    printf(" %d", best - row * CLASSES);
  }
  printf("\nlargest difference: %.2e\n", most);
  return is_close;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const char* folder = argv[1];
  char path[4096];
  snprintf(path, sizeof path, "%s/model.so", folder);
  void* library = tilewright_library_open(path);
  if (library == NULL) check(-1);

  size_t size;
  TilewrightGraph* graph;
  char* json = read_file(folder, "graph.json", &size);
  check(tilewright_graph_create(json, size, tilewright_library_function, library, &graph));
  free(json);
  char* params = read_file(folder, "params.bin", &size);
  check(tilewright_graph_load_params(graph, params, size));
  free(params);

  float* input = read_floats(folder, "input.bin", ROWS * FEATURES);
  int64_t shape[2] = {ROWS, FEATURES};
  DLTensor tensor = {input, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  check(tilewright_graph_set_input(graph, tilewright_graph_input_index(graph, "x"), &tensor));
  free(input);
  check(tilewright_graph_run(graph));

  TilewrightObject* output; /* shares the graph's memory: the next run writes over it */
  check(tilewright_graph_output(graph, 0, &output));
  float* expected = read_floats(folder, "expected.bin", ROWS * CLASSES);
  int is_close = report(tilewright_tensor_dltensor(output)->data, expected);
  free(expected);
  tilewright_object_release(output);
  tilewright_graph_release(graph);
  return is_close ? 0 : 1;
}
