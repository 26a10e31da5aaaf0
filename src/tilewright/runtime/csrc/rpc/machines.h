/* Virtual machines of a session: the program of a loaded library on devices, and its functions. */
#ifndef TILEWRIGHT_RPC_MACHINES_H_
#define TILEWRIGHT_RPC_MACHINES_H_

#include "objects.h"

typedef struct Machine Machine;

/* A machine for a program whose kernels are functions of `code`, which it keeps; NULL with an error. The program outlives it. */
Machine* machine_create(const char* program, uint64_t size, TilewrightObject* code, bool keeps_memory, const DLDevice* devices,
                        int32_t num_devices);
void machine_release(Machine* machine); /* NULL is fine */

/* A new reference to a function of the program; NULL, without an error, where there is none. */
TilewrightObject* machine_function(const Machine* machine, const char* name);

/* The names of the parameters of the function that the only argument names, as a list. */
int32_t machine_parameters(const Machine* machine, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* Runs the function that the first argument names on the others, once to warm up and once to measure. The result is JSON
 * in bytes: for each call of a kernel its name, when it began and how long it took, in seconds. */
int32_t machine_profile(const Machine* machine, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

#endif
