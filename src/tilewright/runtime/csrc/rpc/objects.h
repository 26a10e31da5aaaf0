/* The objects that a session has given out, by their handles. */
#ifndef TILEWRIGHT_RPC_OBJECTS_H_
#define TILEWRIGHT_RPC_OBJECTS_H_

#include "../internal.h"

#define MOST_OBJECTS 1000000

/* A module is an object of the runtime with a number of its own: compiled functions get it as an argument and refuse it. */
#define TYPE_MODULE 0x54570101

typedef struct {
  uint64_t handle;
  TilewrightObject* object; /* NULL once it was given back */
} ObjectEntry;

/* Entries are in the order of their handles, which only grow. */
typedef struct {
  ObjectEntry* entries;
  size_t count, room, alive;
  uint64_t next;
} Objects;

/* A new handle for an object, of which a reference is kept; 0 with an error. */
uint64_t objects_add(Objects* objects, TilewrightObject* object);

/* NULL without an error for a handle that there is not. */
TilewrightObject* objects_find(const Objects* objects, uint64_t handle);

/* The object of a handle, which must have the type; NULL with an error. */
TilewrightObject* objects_need(const Objects* objects, uint64_t handle, int32_t type_index, const char* what);

void objects_free(Objects* objects, uint64_t handle); /* an unknown handle is fine */
void objects_end(Objects* objects);

#endif
