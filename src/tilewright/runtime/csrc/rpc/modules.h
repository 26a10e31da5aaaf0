/* Modules of a session: loaded libraries, graph executors and virtual machines. */
#ifndef TILEWRIGHT_RPC_MODULES_H_
#define TILEWRIGHT_RPC_MODULES_H_

#include "objects.h"

/* A library from a file; NULL with an error. */
TilewrightObject* module_load(const char* path);

/* The functions that are linked into the server itself. */
TilewrightObject* module_of_system(void);

/* A graph executor over the functions of a module (NULL: the server's own); NULL with an error. */
TilewrightObject* module_of_graph(const char* json, TilewrightObject* library, const DLDevice* devices, int32_t num_devices);

/* The graph of an executor; NULL for any other module. */
TilewrightGraph* module_graph(const TilewrightObject* module);

/* A function: module, whether to keep memory of tensors for others, devices. A machine for the program of the module. */
int32_t create_machine(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

const char* module_type_key(const TilewrightObject* module);

/* A new reference to a function of a module, or of what it imports; NULL, without an error, where there is none. */
TilewrightObject* module_function(TilewrightObject* module, const char* name, bool with_imports);

/* -1 with an error. */
int32_t module_import(TilewrightObject* module, TilewrightObject* imported);

#endif
