#include "objects.h"

#include <stdlib.h>
#include <string.h>

static ObjectEntry* find(const Objects* objects, uint64_t handle) {
  size_t low = 0, high = objects->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (objects->entries[middle].handle < handle) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool is_there = low < objects->count && objects->entries[low].handle == handle && objects->entries[low].object != NULL;
  return is_there ? &objects->entries[low] : NULL;
}

/* Drops the entries of objects that were given back. */
static void compact(Objects* objects) {
  size_t kept = 0;
  for (size_t i = 0; i < objects->count; ++i) {
    if (objects->entries[i].object != NULL) objects->entries[kept++] = objects->entries[i];
  }
  objects->count = kept;
}

uint64_t objects_add(Objects* objects, TilewrightObject* object) {
  if (objects->alive >= MOST_OBJECTS) {
    tw_fail("MemoryError", "the session holds %d objects, the most that are allowed", MOST_OBJECTS);
    return 0;
  }
  if (objects->count == objects->room && objects->alive <= objects->count / 2) compact(objects);
  if (objects->count == objects->room) {
    size_t room = objects->room == 0 ? 64 : 2 * objects->room;
    ObjectEntry* entries = realloc(objects->entries, room * sizeof *entries);
    if (entries == NULL) {
      tw_fail("MemoryError", "no memory for another object");
      return 0;
    }
    objects->entries = entries;
    objects->room = room;
  }
  tilewright_object_retain(object);
  objects->entries[objects->count++] = (ObjectEntry){++objects->next, object};
  ++objects->alive;
  return objects->next;
}

TilewrightObject* objects_find(const Objects* objects, uint64_t handle) {
  const ObjectEntry* entry = find(objects, handle);
  return entry != NULL ? entry->object : NULL;
}

TilewrightObject* objects_need(const Objects* objects, uint64_t handle, int32_t type_index, const char* what) {
  TilewrightObject* object = objects_find(objects, handle);
  if (object == NULL) {
    tw_fail("ValueError", "the session has no object with the handle %llu", (unsigned long long)handle);
  } else if (object->type_index != type_index) {
    tw_fail("ValueError", "the handle %llu is not %s", (unsigned long long)handle, what);
    object = NULL;
  }
  return object;
}

void objects_free(Objects* objects, uint64_t handle) {
  ObjectEntry* entry = find(objects, handle);
  if (entry == NULL) return;
  TilewrightObject* object = entry->object;
  entry->object = NULL;
  --objects->alive;
  tilewright_object_release(object);
}

void objects_end(Objects* objects) {
  for (size_t i = 0; i < objects->count; ++i) tilewright_object_release(objects->entries[i].object);
  free(objects->entries);
  memset(objects, 0, sizeof *objects);
}
