/* Memory between pages that nobody may touch. Internal to the runtime; see guard.c. */
#ifndef TILEWRIGHT_GUARD_H_
#define TILEWRIGHT_GUARD_H_

#include <stddef.h>
#include <stdint.h>

typedef enum { TW_GUARD_NONE, TW_GUARD_END, TW_GUARD_START } TwGuard;

/* Which side of a tensor touches a guard page, as the environment says; none unless it is set. */
TwGuard tw_guard(void);

/* Memory of so many bytes; NULL when there is none. `alignment` is a power of two of at most a page. */
void* tw_guarded_alloc(size_t num_bytes, size_t alignment);
void tw_guarded_free(void* pointer);

#endif
