/* The registry: names are unique unless overridden, a remembered place survives removal, threads may race. */
#include <pthread.h>

#include "check.h"
#include "tilewright.h"

static int32_t answer(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args;
  (void)num_args;
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = *(int*)self};
  return 0;
}

static int32_t answer_five(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  static int five = 5;
  return answer(&five, args, num_args, result);
}

static TilewrightObject* make(int* self) {
  TilewrightObject* function;
  CHECK(tilewright_function_create(answer, self, NULL, NULL, &function) == 0);
  return function;
}

static int64_t call(const char* name, void** cache) {
  TVMFFIAny result = {0};
  CHECK(tilewright_call_packed(name, cache, NULL, 0, &result) == 0);
  return result.v_int64;
}

static int one = 1, two = 2;

static void* race(void* name) {
  void* cache = NULL;
  for (int i = 0; i < 2000; ++i) {
    TilewrightObject* function = make(i % 2 ? &one : &two);
    CHECK(tilewright_register_function(name, function, 1) == 0);
    tilewright_object_release(function);
    int64_t value = call(name, &cache);
    CHECK(value == 1 || value == 2);
  }
  return NULL;
}

static void* slot; /* of all threads */

static void* bind(void* number) {
  for (int i = 0; i < 2000; ++i) {
    TilewrightObject* function = make((intptr_t)number % 2 ? &one : &two);
    CHECK(tilewright_bind_function(&slot, function) == 0);
    tilewright_object_release(function);
    int64_t value = call("bound", &slot);
    CHECK(value == 1 || value == 2);
  }
  return NULL;
}

/* A bound slot calls its function, whatever is registered; an unbound one asks the registry. */
static void binding(void) {
  TilewrightObject* first = make(&one);
  TilewrightObject* second = make(&two);
  void *own = NULL, *other = NULL;
  CHECK(tilewright_bind_function(&own, first) == 0 && call("bound", &own) == 1);
  TVMFFIAny result = {0};
  CHECK(tilewright_call_packed("bound", &other, NULL, 0, &result) == -1);
  CHECK(tilewright_bind_function(&other, second) == 0 && call("bound", &other) == 2);
  tilewright_object_release(first); /* the slot holds it */
  CHECK(call("bound", &own) == 1);
  CHECK(tilewright_bind_function(&own, NULL) == 0 && own == NULL);
  CHECK(tilewright_register_function("bound", second, 0) == 0);
  CHECK(call("bound", &own) == 2 && own != NULL);
  TilewrightObject* third = make(&one);
  CHECK(tilewright_bind_function(&own, third) == 0 && call("bound", &own) == 1); /* also one that remembers an entry */
  TilewrightObject fake = {.type_index = TILEWRIGHT_TENSOR};
  CHECK(tilewright_bind_function(&own, &fake) == -1 && call("bound", &own) == 1);
  CHECK(tilewright_bind_function(&own, NULL) == 0 && tilewright_bind_function(&other, NULL) == 0);
  tilewright_object_release(third);
  tilewright_object_release(second);

  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, bind, (void*)i) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(tilewright_bind_function(&slot, NULL) == 0);
  CHECK(tilewright_remove_function("bound") == 0);
}

int main(void) {
  binding();
  TilewrightObject* first = make(&one);
  TilewrightObject* second = make(&two);
  void* cache = NULL;
  TVMFFIAny result = {0};
  CHECK(tilewright_get_function("answer") == NULL);
  CHECK(tilewright_call_packed("answer", &cache, NULL, 0, &result) == -1);
  CHECK(strstr(tilewright_error_message(), "answer") != NULL);
  CHECK(cache == NULL);

  CHECK(tilewright_register_function("answer", first, 0) == 0);
  CHECK(tilewright_register_function("answer", second, 0) == -1);
  CHECK(call("answer", &cache) == 1);
  CHECK(cache != NULL);
  CHECK(tilewright_register_function("answer", second, 1) == 0);
  CHECK(call("answer", &cache) == 2);
  CHECK(call("not looked at: the place is remembered", &cache) == 2);

  CHECK(tilewright_remove_function("answer") == 0);
  CHECK(tilewright_remove_function("answer") == -1);
  CHECK(tilewright_call_packed("answer", &cache, NULL, 0, &result) == -1);
  CHECK(tilewright_register_function("answer", first, 0) == 0);
  CHECK(call("answer", &cache) == 1);

  CHECK(tilewright_register_function("", first, 0) == -1);
  CHECK(tilewright_register_function("two\nlines", first, 0) == -1);
  CHECK(tilewright_register_function("nothing", NULL, 0) == -1);
  char* names = tilewright_list_functions();
  CHECK(names != NULL && strstr(names, "answer\n") != NULL && strstr(names, "cache_flush_cpu_non_first_arg\n") != NULL);
  CHECK(strstr(names, "nothing") == NULL);
  tilewright_free_text(names);
  tilewright_object_release(first);
  tilewright_object_release(second);

  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, race, "raced") == 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK(tilewright_remove_function("raced") == 0);
  CHECK(tilewright_remove_function("answer") == 0);
  CHECK(tilewright_remove_function("cache_flush_cpu_non_first_arg") == 0);

  CHECK(tilewright_system_symbol("__tvm_ffi_f") == NULL);
  CHECK(tilewright_register_system_symbol("__tvm_ffi_f", &one) == 0);
  CHECK(tilewright_system_symbol("__tvm_ffi_f") == &one);

  /* Functions that are linked into the program are found where there is no library. */
  CHECK(tilewright_library_function(NULL, "linked") == NULL);
  void* address;
  TilewrightFunction linked = answer_five;
  memcpy(&address, &linked, sizeof address);
  CHECK(tilewright_register_system_symbol("__tvm_ffi_linked", address) == 0);
  TilewrightObject* found = tilewright_library_function(NULL, "linked");
  CHECK(found != NULL && tilewright_function_call(found, NULL, 0, &result) == 0 && result.v_int64 == 5);
  tilewright_object_release(found);
  return 0;
}
