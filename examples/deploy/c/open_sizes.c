/* Runs the model of make_open_model.py, whose sizes are open, from C.   ./open_sizes FOLDER */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tilewright.h"

#define TOLERANCE 1e-5

static const int64_t sizes[][2] = {{2, 5}, {1, 9}, {3, 1}}; /* sentences, and words of each */

/* Ends the program with the runtime's error, unless the status is 0. */
static void check(int32_t status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", tilewright_error_kind(), tilewright_error_message());
  exit(2);
}

/* So many bytes of a file of a size of the model, to be freed. Ends the program where there are not as many. */
static void* read_file(const char* folder, const char* kind, const int64_t* shape, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s_%dx%d.bin", folder, kind, (int)shape[0], (int)shape[1]);
  FILE* file = fopen(path, "rb");
  void* content = malloc(size);
  if (file == NULL || content == NULL || fread(content, 1, size, file) != size) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  fclose(file);
  return content;
}

/* "tokens [?, ?]": an extent of -1 is open. */
static void describe(const char* what, const TilewrightTensorInfo* info) {
  printf("%s %s [", what, info->name);
  for (int32_t i = 0; i < info->ndim; ++i) {
    if (i > 0) printf(", ");
    if (info->shape[i] < 0) printf("?");
    else printf("%d", (int)info->shape[i]);
  }
  printf("]\n");
}

/* Runs the model on one batch and prints the class of each sentence; the largest difference from what is expected. */
static double run(TilewrightSession* session, const char* folder, const int64_t* shape) {
  int64_t extents[2] = {shape[0], shape[1]};
  size_t count = (size_t)(shape[0] * shape[1]);
  int64_t* tokens = read_file(folder, "tokens", shape, count * sizeof *tokens);
  DLTensor input = {tokens, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, extents, NULL, 0};
  check(tilewright_session_set_tensor(session, "tokens", &input));
  free(tokens); /* the session has a copy */
  check(tilewright_session_run(session));

  const DLTensor* output = tilewright_session_output(session, "probabilities"); /* good until the next run */
  if (output == NULL) check(-1);
  int64_t classes = output->shape[1];
  const float* values = output->data;
  float* expected = read_file(folder, "expected", shape, (size_t)(shape[0] * classes) * sizeof *expected);
  double most = output->shape[0] == shape[0] ? 0 : INFINITY;
  printf("%d x %d:", (int)shape[0], (int)shape[1]);
  for (int64_t row = 0; row < shape[0] && row < output->shape[0]; ++row) {
    int64_t best = 0;
    for (int64_t i = 0; i < classes; ++i) {
      double difference = fabs((double)values[row * classes + i] - (double)expected[row * classes + i]);
      if (!isnan(most) && !(difference <= most)) most = difference; /* NaN is the largest */
      if (values[row * classes + i] > values[row * classes + best]) best = i;
    }
    printf(" %d", (int)best);
  }
  printf("\n");
  free(expected);
  return most;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/open.so", argv[1]);
  TilewrightSession* session = tilewright_open(path);
  if (session == NULL) check(-1);
  for (int32_t i = 0; i < tilewright_session_num_inputs(session); ++i) describe("input", tilewright_session_input_info(session, i));
  for (int32_t i = 0; i < tilewright_session_num_outputs(session); ++i) describe("output", tilewright_session_output_info(session, i));
  double most = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    double difference = run(session, argv[1], sizes[i]);
    if (!isnan(most) && !(difference <= most)) most = difference;
  }
  printf("largest difference: %.2e\n", most);
  tilewright_close(session);
  return most <= TOLERANCE ? 0 : 1;
}
