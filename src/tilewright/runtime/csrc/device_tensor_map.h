/* Tensor maps of kernels: described once, made from the arguments of a launch. Internal to the runtime. */
#ifndef TILEWRIGHT_DEVICE_TENSOR_MAP_H_
#define TILEWRIGHT_DEVICE_TENSOR_MAP_H_

#include "device.h"

/* Of one kernel, at most. */
#define TW_MOST_TENSOR_MAPS 16

typedef struct TwTensorMaps TwTensorMaps;

/* A copy of the tensor maps of a kernel with these arguments, checked. NULL without an error for a kernel that has none. */
int32_t tw_tensor_maps_create(const TilewrightKernel* kernel, TwTensorMaps** out);
void tw_tensor_maps_free(TwTensorMaps* maps);

int32_t tw_tensor_maps_count(const TwTensorMaps* maps); /* 0 for NULL */
int32_t tw_tensor_maps_position(const TwTensorMaps* maps, int32_t index);
int32_t tw_tensor_maps_base(const TwTensorMaps* maps, int32_t index); /* the argument */

/* Writes one of them for a launch, into memory that is aligned to 64 bytes. `args` are the kernel's, as its callers give
 * them and checked, and `base` is the address that the map's base argument has become. */
int32_t tw_tensor_map_make(TwTensorMaps* maps, int32_t index, const char* kernel, DLDevice device, const TVMFFIAny* args,
                           void* base, void* out);

/* Reads one from the description of a module; false for what is none. */
struct TwJson;
bool tw_read_tensor_map(const struct TwJson* map, TilewrightTensorMap* out);

#endif
