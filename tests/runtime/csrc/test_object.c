/* Objects, values and errors: references are counted, strings keep their bytes, each thread has its own error. */
#include <pthread.h>

#include "check.h"
#include "tilewright.h"

static int finalized;
static void finalize(void* self) { finalized += *(int*)self; }

static int32_t add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (num_args != 2) {
    tilewright_set_error("TypeError", "add takes two arguments");
    return -1;
  }
  *result = (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = args[0].v_int64 + args[1].v_int64 + *(int*)self};
  return 0;
}

static void functions(void) {
  int self = 100;
  TilewrightObject* function;
  CHECK(tilewright_function_create(add, &self, &self, finalize, &function) == 0);
  TVMFFIAny args[2] = {{.type_index = TILEWRIGHT_INT, .v_int64 = 3}, {.type_index = TILEWRIGHT_INT, .v_int64 = 4}};
  TVMFFIAny result = {0};
  CHECK(tilewright_function_call(function, args, 2, &result) == 0);
  CHECK(result.type_index == TILEWRIGHT_INT && result.v_int64 == 107);
  CHECK(tilewright_function_call(function, args, 1, &result) == -1);
  CHECK_TEXT(tilewright_error_kind(), "TypeError");
  tilewright_object_retain(function);
  tilewright_object_release(function);
  CHECK(finalized == 0);
  tilewright_object_release(function);
  CHECK(finalized == 100);
  CHECK(tilewright_function_call(NULL, args, 2, &result) == -1);
}

/* A holder of a weak reference keeps the memory, not the value. */
static void weak_references(void) {
  finalized = 0;
  int self = 1;
  TilewrightObject* function;
  CHECK(tilewright_function_create(add, &self, &self, finalize, &function) == 0);
  function->reference_counts += (uint64_t)1 << 32;
  tilewright_object_release(function);
  CHECK(finalized == 1);
  CHECK(function->reference_counts == (uint64_t)1 << 32);
  function->deleter(function, 2);
}

static void strings(void) {
  TVMFFIAny value = {0};
  const char* data;
  size_t size;
  CHECK(tilewright_make_string("a\0b", 3, &value) == 0);
  CHECK(value.type_index == TILEWRIGHT_STRING);
  CHECK(tilewright_get_bytes(&value, &data, &size) == 0);
  CHECK(size == 3 && memcmp(data, "a\0b", 4) == 0);
  tilewright_any_release(&value);
  CHECK(value.type_index == TILEWRIGHT_NONE);
  CHECK(tilewright_make_bytes(NULL, 0, &value) == 0);
  CHECK(tilewright_get_bytes(&value, &data, &size) == 0);
  CHECK(size == 0 && *data == 0);
  tilewright_any_release(&value);

  TVMFFIAny plain = {.type_index = TILEWRIGHT_C_STRING, .v_c_str = "hello"};
  CHECK(tilewright_get_bytes(&plain, &data, &size) == 0 && size == 5);
  TVMFFIAny small = {.type_index = TILEWRIGHT_SMALL_STRING, .zero_padding = 2, .v_bytes = "ok"};
  CHECK(tilewright_get_bytes(&small, &data, &size) == 0 && size == 2 && memcmp(data, "ok", 2) == 0);
  TVMFFIAny number = {.type_index = TILEWRIGHT_INT, .v_int64 = 5};
  CHECK(tilewright_get_bytes(&number, &data, &size) == -1);
  CHECK(tilewright_make_string("x", SIZE_MAX, &value) == -1);
  CHECK_TEXT(tilewright_error_kind(), "MemoryError");
}

static void* other_thread(void* unused) {
  (void)unused;
  CHECK(tilewright_error_kind() == NULL);
  tilewright_set_error("IndexError", "elsewhere");
  return NULL;
}

static void errors(void) {
  tilewright_clear_error();
  CHECK(tilewright_error_kind() == NULL && tilewright_error_message() == NULL && tilewright_error_payload() == 0);
  tilewright_set_error("ValueError", "here");
  tilewright_set_error_payload(7);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
  pthread_join(thread, NULL);
  CHECK_TEXT(tilewright_error_kind(), "ValueError");
  CHECK(tilewright_error_payload() == 7);
  tilewright_set_error(tilewright_error_message(), tilewright_error_kind()); /* the slot's own strings, passed back */
  CHECK_TEXT(tilewright_error_kind(), "here");
  CHECK_TEXT(tilewright_error_message(), "ValueError");
  CHECK(tilewright_error_payload() == 0);
  tilewright_set_error(NULL, NULL);
  CHECK_TEXT(tilewright_error_kind(), "RuntimeError");
  tilewright_clear_error();
}

static int released;
static void release(void* handle) { released = *(int*)handle; }

static void opaque(void) {
  int handle = 42;
  TVMFFIAny value = {0};
  CHECK(tilewright_make_opaque(&handle, release, &value) == 0);
  CHECK(tilewright_opaque_handle(value.v_obj) == &handle);
  tilewright_any_release(&value);
  CHECK(released == 42);
}

int main(void) {
  functions();
  weak_references();
  strings();
  errors();
  opaque();
  return 0;
}
