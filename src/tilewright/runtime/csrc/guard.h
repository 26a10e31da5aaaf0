/* Memory between pages that nobody may touch. Internal to the runtime; see guard.c. */
#ifndef TILEWRIGHT_GUARD_H_
#define TILEWRIGHT_GUARD_H_

#include <stddef.h>
#include <stdint.h>

#include "platform.h"

typedef enum { TW_GUARD_NONE, TW_GUARD_END, TW_GUARD_START } TwGuard;

/* Which side of a tensor touches a guard page, as the environment says; none unless it is set. */
TwGuard tw_guard(void);

/* Memory of so many bytes; NULL when there is none. `alignment` is a power of two of at most a page. */
void* tw_guarded_alloc(size_t num_bytes, size_t alignment);
void tw_guarded_free(void* pointer);

/* What memory must be aligned to for executors to use it in place. What ends at a guard page is aligned as its elements
 * are; kernels check that themselves. */
static inline uintptr_t tw_alignment_in_place(void) { return tw_guard() == TW_GUARD_END ? 1 : TW_ALIGNMENT; }

#endif
