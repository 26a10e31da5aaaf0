/* Loading object files into this process: what `export_library("model.tar")` writes, or a plain object.
 *
 * A static program has no loader of the system to call. Objects need little of one: they have code, data and calls to each
 * other, to the runtime, and to a few functions of the C library (symbols.c). */
#ifndef TILEWRIGHT_RPC_LOADER_H_
#define TILEWRIGHT_RPC_LOADER_H_

#include "../internal.h"

/* One object file in memory. */
typedef struct {
  const uint8_t* data;
  size_t size;
} ObjectFile;

typedef struct LoadedObjects LoadedObjects;

/* Links and maps objects; NULL with an error. What is loaded stays loaded. */
LoadedObjects* objects_load(const ObjectFile* files, int32_t count);
void* objects_symbol(const LoadedObjects* loaded, const char* name);

/* A function or datum that the server gives to loaded code; NULL where there is none of the name. */
void* server_symbol(const char* name);

#endif
