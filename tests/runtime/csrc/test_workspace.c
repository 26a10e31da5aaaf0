/* Workspace: aligned, reused by the thread that freed it, given back when the thread ends. */
#include <pthread.h>

#include "check.h"
#include "tilewright.h"

static void* use_and_leave(void* unused) {
  (void)unused;
  void* blocks[40];
  for (int i = 0; i < 40; ++i) {
    blocks[i] = tilewright_workspace_alloc(kDLCPU, 0, (uint64_t)i * 1000 + 1);
    CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % 64 == 0);
    memset(blocks[i], i, (size_t)i * 1000 + 1);
  }
  for (int i = 0; i < 40; ++i) CHECK(tilewright_workspace_free(kDLCPU, 0, blocks[i]) == 0);
  return NULL;
}

int main(void) {
  void* first = tilewright_workspace_alloc(kDLCPU, 0, 1000);
  CHECK(first != NULL);
  void* second = tilewright_workspace_alloc(kDLCPU, 0, 1000);
  CHECK(second != NULL && second != first);
  CHECK(tilewright_workspace_free(kDLCPU, 0, first) == 0);
  CHECK(tilewright_workspace_alloc(kDLCPU, 0, 500) == first);
  CHECK(tilewright_workspace_free(kDLCPU, 0, first) == 0);
  void* larger = tilewright_workspace_alloc(kDLCPU, 0, 1001);
  CHECK(larger != NULL && larger != first);
  CHECK(tilewright_workspace_free(kDLCPU, 0, larger) == 0);
  CHECK(tilewright_workspace_free(kDLCPU, 0, second) == 0);

  void* none = tilewright_workspace_alloc(kDLCPU, 0, 0);
  CHECK(none != NULL);
  CHECK(tilewright_workspace_free(kDLCPU, 0, none) == 0);
  CHECK(tilewright_workspace_free(kDLCPU, 0, NULL) == 0);
  CHECK(tilewright_workspace_alloc(kDLCPU, 0, UINT64_MAX) == NULL);
  CHECK_TEXT(tilewright_error_kind(), "MemoryError");
  CHECK(tilewright_workspace_alloc(kDLCPU, 0, (uint64_t)1 << 62) == NULL);
  CHECK(tilewright_workspace_alloc(kDLCUDA, 0, 16) == NULL);
  CHECK_TEXT(tilewright_error_kind(), "RuntimeError");

  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, use_and_leave, NULL) == 0);
  pthread_join(thread, NULL);
  use_and_leave(NULL);
  return 0;
}
