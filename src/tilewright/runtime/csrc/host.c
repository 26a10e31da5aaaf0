/* How an artefact's embedded runtime finds the runtime that loaded it, and the table that this one offers. */
#include <stddef.h>

#include "internal.h"

static const TilewrightHost own_table = {
    .size = sizeof(TilewrightHost),
    .version = TILEWRIGHT_HOST_VERSION,
    .set_error = tilewright_set_error,
    .call_packed = tilewright_call_packed,
    .workspace_alloc = tilewright_workspace_alloc,
    .workspace_free = tilewright_workspace_free,
    .parallel_launch = tilewright_parallel_launch,
    .device_table = tilewright_device_table,
    .device_register = tilewright_device_register,
    .bind_function = tilewright_bind_function,
    .set_device = tilewright_set_device,
    .current_device = tilewright_current_device,
};

const TilewrightHost* tilewright_host(void) { return &own_table; }

#ifdef TILEWRIGHT_EMBEDDED
static _Atomic(const TilewrightHost*) bound;

const TilewrightHost* tw_bound_host(void) { return atomic_load_explicit(&bound, memory_order_acquire); }

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

EXPORTED int32_t __tilewright_bind_host(const TilewrightHost* host);

/* Called by a loading runtime before anything else of the artefact. The table must outlive the artefact. Returns -1,
 * and leaves the artefact on its own runtime, when the loader's table is of another version. A loader from before there
 * were tables of devices is good enough. */
int32_t __tilewright_bind_host(const TilewrightHost* host) {
  if (host->version != TILEWRIGHT_HOST_VERSION || host->size < offsetof(TilewrightHost, device_table)) return -1;
  atomic_store_explicit(&bound, host, memory_order_release);
  return 0;
}
#endif
