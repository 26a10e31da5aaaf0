/* Memory between pages that nobody may touch, for tests: an access outside of a tensor ends the program where it happens.
 *
 * TILEWRIGHT_GUARD_PAGES=1 (or "end") puts the last byte of every tensor right before such a page, aligned only as its
 * elements are; "start" puts the first byte right behind one, aligned as usual. What is left of the pages is filled with
 * a pattern that is looked at when the memory is freed, so that writes into it are found too, if later. Fresh memory is
 * filled with the same pattern, the first megabytes of it: as numbers it is NaN and -1. Freed memory is unmapped.
 */
#define _GNU_SOURCE
#include "guard.h"

#if defined(_WIN32) || defined(__wasm__)
TwGuard tw_guard(void) { return TW_GUARD_NONE; }
void* tw_guarded_alloc(size_t num_bytes, size_t alignment) {
  (void)num_bytes, (void)alignment;
  return NULL;
}
void tw_guarded_free(void* pointer) { (void)pointer; }

#else
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN 0xff
#define MOST_FILLED ((size_t)64 << 20) /* a huge tensor of which little is used shall not take the memory */

/* On a page of its own before the memory; nobody may touch that page until the memory is freed. */
typedef struct {
  size_t mapped; /* bytes of all pages */
  size_t num_bytes;
  unsigned char* data;
} Head;

static TwGuard read_mode(void) {
  const char* text = tw_environment("TILEWRIGHT_GUARD_PAGES");
  static const char* const off[] = {"", "0", "false", "no", "off"};
  if (text == NULL) return TW_GUARD_NONE;
  for (size_t i = 0; i < sizeof off / sizeof off[0]; ++i) {
    if (strcasecmp(text, off[i]) == 0) return TW_GUARD_NONE;
  }
  return strcasecmp(text, "start") == 0 ? TW_GUARD_START : TW_GUARD_END;
}

TwGuard tw_guard(void) {
  /* Read once: memory has to be freed the way it was allocated. */
  static atomic_int known;
  int mode = atomic_load_explicit(&known, memory_order_relaxed);
  if (mode == 0) {
    mode = 1 + (int)read_mode();
    int before = 0;
    if (!atomic_compare_exchange_strong(&known, &before, mode)) mode = before;
  }
  return (TwGuard)(mode - 1);
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void* tw_guarded_alloc(size_t num_bytes, size_t alignment) {
  size_t page = page_size();
  if (num_bytes > SIZE_MAX / 2 - 4 * page || alignment > page) return NULL;
  size_t inside = (num_bytes + page - 1) / page * page;
  size_t mapped = inside + 2 * page;
  unsigned char* start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  unsigned char* first = start + page;
  unsigned char* data = first;
  if (tw_guard() == TW_GUARD_END) data += (inside - num_bytes) / alignment * alignment;
  size_t before = (size_t)(data - first);
  memset(first, PATTERN, before + (num_bytes < MOST_FILLED ? num_bytes : MOST_FILLED));
  memset(data + num_bytes, PATTERN, inside - before - num_bytes);
  *(Head*)(void*)start = (Head){mapped, num_bytes, data};
  if (mprotect(first + inside, page, PROT_NONE) != 0 || mprotect(start, page, PROT_NONE) != 0) {
    munmap(start, mapped);
    return NULL;
  }
  return data;
}

static void check_pattern(const unsigned char* from, const unsigned char* to, const Head* head, const char* side) {
  for (; from < to; ++from) {
    if (*from == PATTERN) continue;
    fprintf(stderr, "tilewright: memory was written outside of a tensor of %zu bytes: %td bytes from its start, %s it\n",
            head->num_bytes, from - head->data, side);
    abort();
  }
}

void tw_guarded_free(void* pointer) {
  if (pointer == NULL) return;
  size_t page = page_size();
  /* The memory begins on the first page, or, when it has no bytes, where the page behind it does. */
  unsigned char* first = (unsigned char*)pointer - (uintptr_t)pointer % page;
  unsigned char* start = first - page;
  if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) abort();
  const Head* head = (const Head*)(const void*)start;
  check_pattern(first, head->data, head, "before");
  check_pattern(head->data + head->num_bytes, start + head->mapped - page, head, "behind");
  munmap(start, head->mapped);
}
#endif
