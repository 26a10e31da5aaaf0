/* Tensors that functions of the runtime itself read and write element by element: compact, in host memory. */
#ifndef TILEWRIGHT_HOST_TENSORS_H_
#define TILEWRIGHT_HOST_TENSORS_H_

#include "device.h"

/* The tensor of an argument, or NULL after an error that names the function and the argument. */
const DLTensor* tw_host_tensor(const char* function, const TVMFFIAny* args, int32_t num_args, int32_t position);

/* The number of an argument, integer or floating. Fails for anything else. */
int32_t tw_number(const char* function, const TVMFFIAny* args, int32_t num_args, int32_t position, double* out);

static inline void* tw_elements(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }
int64_t tw_num_elements(const DLTensor* tensor);

/* Sets an element from a number, rounded towards zero for integers. False for a type that cannot be stored. */
bool tw_store(const DLTensor* tensor, int64_t index, double value);

#endif
