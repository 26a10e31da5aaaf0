/* Measurement: the function runs once before, then number times for each repeat, more when a repeat is too short. */
#include "check.h"
#include "tilewright.h"

static int calls, preparations;

static int32_t count(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)args;
  calls += 1;
  CHECK(num_args == 1);
  return tilewright_make_string("a result that must be released", 30, result);
}

static int32_t prepare(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  CHECK(num_args == 1 && args[0].v_int64 == 5);
  preparations += 1;
  return 0;
}

static int32_t fail(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)args;
  (void)num_args;
  (void)result;
  tilewright_set_error("ValueError", "no");
  return -1;
}

int main(void) {
  TVMFFIAny args[1] = {{.type_index = TILEWRIGHT_INT, .v_int64 = 5}};
  double seconds[3];
  CHECK(tilewright_time_function(count, NULL, args, 1, 4, 3, 0, NULL, seconds) == 0);
  CHECK(calls == 1 + 4 * 3);
  for (int i = 0; i < 3; ++i) CHECK(seconds[i] >= 0 && seconds[i] < 1);

  TilewrightObject* prepared;
  CHECK(tilewright_function_create(prepare, NULL, NULL, NULL, &prepared) == 0);
  calls = 0;
  CHECK(tilewright_time_function(count, NULL, args, 1, 1, 2, 2, prepared, seconds) == 0);
  CHECK(preparations == 2);
  CHECK(calls > 100);
  tilewright_object_release(prepared);

  CHECK(tilewright_time_function(fail, NULL, args, 1, 1, 1, 0, NULL, seconds) == -1);
  CHECK_TEXT(tilewright_error_message(), "no");
  CHECK(tilewright_time_function(count, NULL, args, 1, 0, 1, 0, NULL, seconds) == -1);

  TilewrightObject* flush = tilewright_get_function("cache_flush_cpu_non_first_arg");
  TilewrightObject* tensor;
  int64_t shape[1] = {1000};
  CHECK(tilewright_tensor_create(shape, 1, (DLDataType){kDLFloat, 32, 1}, (DLDevice){kDLCPU, 0}, &tensor) == 0);
  float* data = tilewright_tensor_dltensor(tensor)->data;
  for (int i = 0; i < 1000; ++i) data[i] = (float)i;
  TVMFFIAny tensors[3] = {args[0],
                          {.type_index = TILEWRIGHT_TENSOR, .v_obj = tensor},
                          {.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = tilewright_tensor_dltensor(tensor)}};
  TVMFFIAny result = {0};
  CHECK(tilewright_function_call(flush, tensors, 3, &result) == 0);
  for (int i = 0; i < 1000; ++i) CHECK(data[i] == (float)i);
  tilewright_object_release(tensor);
  tilewright_object_release(flush);
  CHECK(tilewright_remove_function("cache_flush_cpu_non_first_arg") == 0);

  CHECK(tilewright_cpu_has_feature("no-such-feature") == -1);
#if defined(__x86_64__)
  CHECK(tilewright_cpu_has_feature("sse2") == 1);
#endif
  tilewright_clear_error();
  return 0;
}
