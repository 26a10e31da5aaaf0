/* How a DLPack capsule of Python ends when nobody has consumed it. This is C because it may run while an exception is being
 * raised, when no Python code can: NumPy drops the capsule of a device that it does not know in just that way. */
#include <string.h>

#include "internal.h"

static int (*is_valid)(void* capsule, const char* name);
static void* (*get_pointer)(void* capsule, const char* name);

static void destroy(void* capsule) {
  if (is_valid(capsule, "dltensor")) {
    DLManagedTensor* managed = get_pointer(capsule, "dltensor");
    if (managed->deleter != NULL) managed->deleter(managed);
  } else if (is_valid(capsule, "dltensor_versioned")) {
    DLManagedTensorVersioned* managed = get_pointer(capsule, "dltensor_versioned");
    if (managed->deleter != NULL) managed->deleter(managed);
  }
}

void* tilewright_capsule_destructor(void* capsule_is_valid, void* capsule_get_pointer) {
  void (*function)(void*) = destroy;
  void* address;
  memcpy(&is_valid, &capsule_is_valid, sizeof is_valid);
  memcpy(&get_pointer, &capsule_get_pointer, sizeof get_pointer);
  memcpy(&address, &function, sizeof address);
  return address;
}
