/* The thread's error slot, and the thread state that holds it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static _Thread_local TwThreadState thread_state;

/* Shown when there is no memory left to copy a message. */
static char out_of_memory_kind[] = "MemoryError";
static char out_of_memory_message[] = "out of memory while reporting an error";

static void free_error(TwError* error) {
  if (error->kind != out_of_memory_kind) free(error->kind);
  if (error->message != out_of_memory_message) free(error->message);
  *error = (TwError){0};
}

static void release_thread(void* state) {
  TwThreadState* thread = state;
  free_error(&thread->error);
  tw_workspace_release_all(thread);
  thread->registered = false;
}

TwThreadState* tw_thread(void) {
  TwThreadState* state = &thread_state;
  if (!state->registered) {
    state->registered = true;
    tw_at_thread_exit(release_thread, state);
  }
  return state;
}

static char* copy_text(const char* text) {
  size_t size = strlen(text) + 1;
  char* copy = malloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

/* A host that knows only the tvm-ffi convention looks for the error in its own slot. */
static void tell_tvm_ffi(const char* kind, const char* message) {
#ifdef TILEWRIGHT_EMBEDDED
  static _Atomic(void*) found;
  void* address = atomic_load_explicit(&found, memory_order_relaxed);
  if (address == NULL) {
    address = tw_process_symbol("TVMFFIErrorSetRaisedFromCStr");
    atomic_store_explicit(&found, address, memory_order_relaxed);
  }
  if (address == NULL) return;
  void (*set_raised)(const char*, const char*);
  memcpy(&set_raised, &address, sizeof set_raised);
  set_raised(kind, message);
#else
  (void)kind;
  (void)message;
#endif
}

void tilewright_set_error(const char* kind, const char* message) {
  if (kind == NULL) kind = "RuntimeError";
  if (message == NULL) message = "";
  const TilewrightHost* host = tw_bound_host();
  if (host != NULL) {
    host->set_error(kind, message);
    return;
  }
  /* Copied before the old strings go: the caller may pass the slot's own strings back. */
  TwError error = {copy_text(kind), copy_text(message), 0};
  if (error.kind == NULL || error.message == NULL) {
    free_error(&error);
    error = (TwError){out_of_memory_kind, out_of_memory_message, 0};
  }
  TwThreadState* state = tw_thread();
  free_error(&state->error);
  state->error = error;
  tell_tvm_ffi(error.kind, error.message);
}

void tilewright_set_error_payload(uint64_t payload) { tw_thread()->error.payload = payload; }
const char* tilewright_error_kind(void) { return tw_thread()->error.kind; }
const char* tilewright_error_message(void) { return tw_thread()->error.message; }
uint64_t tilewright_error_payload(void) { return tw_thread()->error.payload; }
void tilewright_clear_error(void) { free_error(&tw_thread()->error); }

void tw_error_require(void) {
  if (tw_thread()->error.kind == NULL) tilewright_set_error("RuntimeError", "a task failed without saying why");
}

TwError tw_error_take(void) {
  TwThreadState* state = tw_thread();
  tw_error_require();
  TwError taken = state->error;
  state->error = (TwError){0};
  return taken;
}

void tw_error_give(TwError error) {
  TwThreadState* state = tw_thread();
  free_error(&state->error);
  state->error = error;
  tell_tvm_ffi(error.kind, error.message);
}

int32_t tw_fail(const char* kind, const char* format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  tilewright_set_error(kind, message);
  return -1;
}
