/* Opens a library with its model inside, and runs it by the names of its inputs and outputs.
 *
 *   session MODEL.so BATCH    prints what the model takes and gives, and its outputs for values 0, 0.25, 0.5 ...; an open
 *                             extent is BATCH
 *   session MODEL.so errors   provokes every error, and prints the messages
 *   session MODEL.so memory   has every allocation of the runtime fail once; needs --wrap for the allocating functions
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright.h"

#ifdef FAIL_ALLOCATIONS
void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
int __real_posix_memalign(void** out, size_t alignment, size_t size);
void* __wrap_malloc(size_t size);
void* __wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void** out, size_t alignment, size_t size);

/* How many allocations of this thread succeed before one fails; -1: all do. */
static _Thread_local int left = -1;
static int fails(void) { return left >= 0 && left-- == 0; }
void* __wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void* __wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
int __wrap_posix_memalign(void** out, size_t alignment, size_t size) {
  return fails() ? 12 : __real_posix_memalign(out, alignment, size);
}

/* Opens, clones, sets, runs and reads; -1 at the first step that fails. */
static int32_t use(const char* path) {
  float values[32] = {0};
  TilewrightSession* session = tilewright_open(path);
  TilewrightSession* clone = session != NULL ? tilewright_session_clone(session) : NULL;
  int32_t status = clone != NULL ? 0 : -1;
  if (status == 0) status = tilewright_session_set_input(clone, tilewright_session_input_info(clone, 0)->name, values, sizeof values);
  if (status == 0) status = tilewright_session_run(clone);
  if (status == 0) status = tilewright_session_output(clone, tilewright_session_output_info(clone, 0)->name) != NULL ? 0 : -1;
  tilewright_close(clone);
  tilewright_close(session);
  return status;
}

static int fail_allocations(const char* path) {
  int refused = 0;
  if (use(path) != 0) return 6; /* what is allocated once and kept is there now */
  for (int successes = 0; successes < 100000; ++successes) {
    left = successes;
    int32_t status = use(path);
    int was_reached = left < 0;
    left = -1;
    if (!was_reached) {
      printf("refused %s\n", refused > 5 ? "often" : "hardly ever");
      return status == 0 ? 0 : 7;
    }
    if (status == 0) continue; /* it was for something that can be done without */
    ++refused;
    tilewright_clear_error();
  }
  return 8;
}
#endif

static void check(int32_t status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", tilewright_error_kind(), tilewright_error_message());
  exit(2);
}

static void print_info(const char* what, const TilewrightTensorInfo* info) {
  printf("%s %s code%d bits%d", what, info->name, info->dtype.code, info->dtype.bits);
  for (int32_t i = 0; i < info->ndim; ++i) printf(" %lld", (long long)info->shape[i]);
  printf("\n");
}

static void set_inputs(TilewrightSession* session, int64_t batch) {
  for (int32_t i = 0; i < tilewright_session_num_inputs(session); ++i) {
    const TilewrightTensorInfo* info = tilewright_session_input_info(session, i);
    int64_t count = 1;
    for (int32_t d = 0; d < info->ndim; ++d) count *= info->shape[d] < 0 ? batch : info->shape[d];
    float* values = malloc((size_t)count * sizeof(float) + 1);
    for (int64_t at = 0; at < count; ++at) values[at] = 0.25f * (float)at;
    check(tilewright_session_set_input(session, info->name, values, (size_t)count * sizeof(float)));
    free(values);
  }
}

static void print_outputs(TilewrightSession* session) {
  for (int32_t i = 0; i < tilewright_session_num_outputs(session); ++i) {
    const TilewrightTensorInfo* info = tilewright_session_output_info(session, i);
    const DLTensor* output = tilewright_session_output(session, info->name);
    if (output == NULL) check(-1);
    int64_t count = 1;
    for (int32_t d = 0; d < output->ndim; ++d) count *= output->shape[d];
    float* values = malloc((size_t)count * sizeof(float) + 1);
    check(tilewright_session_copy_output(session, info->name, values, (size_t)count * sizeof(float)));
    printf("%s:", info->name);
    for (int64_t at = 0; at < count; ++at) printf(" %.9g", (double)values[at]);
    printf("\n");
    if (count > 0 && memcmp(values, output->data, (size_t)count * sizeof(float)) != 0) exit(3);
    free(values);
  }
}

static void* run_clone(void* session) {
  for (int i = 0; i < 50; ++i) check(tilewright_session_run(session));
  return NULL;
}

static void expect(int failed) {
  if (!failed) exit(4);
  printf("%s: %s\n", tilewright_error_kind(), tilewright_error_message());
  tilewright_clear_error();
}

static void provoke(TilewrightSession* session) {
  float values[4] = {0};
  const char* name = tilewright_session_input_info(session, 0)->name;
  const char* output = tilewright_session_output_info(session, 0)->name;
  expect(tilewright_open("absent.so") == NULL);
  expect(tilewright_session_run(session) != 0);
  expect(tilewright_session_output(session, output) == NULL);
  expect(tilewright_session_set_input(session, "nothing", values, sizeof values) != 0);
  expect(tilewright_session_set_input(session, name, values, 3) != 0);
  int64_t shape[1] = {4};
  DLTensor tensor = {values, {kDLCPU, 0}, 1, {kDLFloat, 64, 1}, shape, NULL, 0};
  expect(tilewright_session_set_tensor(session, name, &tensor) != 0);
  set_inputs(session, 1);
  check(tilewright_session_run(session));
  expect(tilewright_session_output(session, "nothing") == NULL);
  expect(tilewright_session_copy_output(session, output, values, 1) != 0);
  if (tilewright_session_input_info(session, -1) != NULL || tilewright_session_output_info(session, 99) != NULL) exit(5);
  tilewright_close(NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 1;
#ifdef FAIL_ALLOCATIONS
  if (strcmp(argv[2], "memory") == 0) return fail_allocations(argv[1]);
#endif
  TilewrightSession* session = tilewright_open(argv[1]);
  if (session == NULL) check(-1);
  if (strcmp(argv[2], "errors") == 0) {
    provoke(session);
    tilewright_close(session);
    return 0;
  }
  for (int32_t i = 0; i < tilewright_session_num_inputs(session); ++i) print_info("input", tilewright_session_input_info(session, i));
  for (int32_t i = 0; i < tilewright_session_num_outputs(session); ++i) print_info("output", tilewright_session_output_info(session, i));
  TilewrightSession* clone = tilewright_session_clone(session);
  if (clone == NULL) check(-1);
  int64_t batch = strtoll(argv[2], NULL, 10);
  set_inputs(session, batch);
  set_inputs(clone, batch);
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_clone, clone) != 0) return 1;
  for (int i = 0; i < 50; ++i) check(tilewright_session_run(session));
  pthread_join(thread, NULL);
  print_outputs(session);
  tilewright_close(session); /* the clone outlives it */
  check(tilewright_session_run(clone));
  print_outputs(clone);
  tilewright_close(clone);
  return 0;
}
