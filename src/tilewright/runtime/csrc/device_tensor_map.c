/* Tensor maps of kernels. A map depends on the address of a tensor, and on its extents where they are arguments: those
 * that were made last are kept, so that a kernel that is launched again on the same tensors asks the driver for nothing. */
#include "device_tensor_map.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 8

typedef struct {
  TilewrightTensor tensor;
  int32_t device_id;
  bool is_made;
  unsigned char content[TILEWRIGHT_TENSOR_MAP_BYTES];
} Made;

typedef struct {
  TilewrightTensorMap described;
  Made made[KEPT];
  int32_t next; /* which is made anew */
} Map;

struct TwTensorMaps {
  TwMutex lock; /* of what is made */
  int32_t count;
  Map maps[];
};

static bool is_integer(DLDataType type) { return (type.code == kDLInt || type.code == kDLUInt) && type.lanes == 1; }

static int32_t check_size(const TilewrightSize* size, const TilewrightKernel* kernel) {
  for (int i = 0; i < TILEWRIGHT_SIZE_ARGUMENTS; ++i) {
    int32_t argument = size->arguments[i];
    if (argument == -1) continue;
    if (argument < 0 || argument >= kernel->num_args || !is_integer(kernel->arg_types[argument])) {
      return tw_fail("ValueError", "a tensor map of %s has a size by the argument %d, which is not an integer", kernel->name, (int)argument);
    }
  }
  return 0;
}

static int32_t check_map(const TilewrightTensorMap* map, const TilewrightKernel* kernel, int32_t least) {
  if (map->position < least || map->position >= kernel->num_args + kernel->num_tensor_maps) {
    return tw_fail("ValueError", "a tensor map cannot be the parameter %d of %s: there are %d, and maps come by rising position",
                   (int)map->position, kernel->name, (int)(kernel->num_args + kernel->num_tensor_maps));
  }
  if (map->base < 0 || map->base >= kernel->num_args || kernel->arg_types[map->base].code != kDLOpaqueHandle) {
    return tw_fail("ValueError", "a tensor map of %s is of the argument %d, which is not a pointer", kernel->name, (int)map->base);
  }
  if (map->tensor.rank < 1 || map->tensor.rank > TILEWRIGHT_TENSOR_MAP_DIMENSIONS) {
    return tw_fail("ValueError", "a tensor map of %s has %d dimensions; 1 to %d are possible", kernel->name, (int)map->tensor.rank,
                   TILEWRIGHT_TENSOR_MAP_DIMENSIONS);
  }
  for (int32_t i = 0; i < map->tensor.rank; ++i) {
    if (check_size(&map->dims[i], kernel) != 0 || (i > 0 && check_size(&map->strides[i - 1], kernel) != 0)) return -1;
  }
  return 0;
}

int32_t tw_tensor_maps_create(const TilewrightKernel* kernel, TwTensorMaps** out) {
  int32_t count = kernel->num_tensor_maps;
  *out = NULL;
  if (count == 0) return 0;
  if (count < 0 || count > TW_MOST_TENSOR_MAPS) {
    return tw_fail("ValueError", "%s has %d tensor maps; a kernel has up to %d", kernel->name, (int)count, TW_MOST_TENSOR_MAPS);
  }
  for (int32_t i = 0, least = 0; i < count; ++i) {
    if (check_map(&kernel->tensor_maps[i], kernel, least) != 0) return -1;
    least = kernel->tensor_maps[i].position + 1;
  }
  TwTensorMaps* maps = calloc(1, sizeof *maps + (size_t)count * sizeof *maps->maps);
  if (maps == NULL) return tw_fail("MemoryError", "no memory for the tensor maps of %s", kernel->name);
  tw_mutex_init(&maps->lock);
  maps->count = count;
  for (int32_t i = 0; i < count; ++i) maps->maps[i].described = kernel->tensor_maps[i];
  *out = maps;
  return 0;
}

void tw_tensor_maps_free(TwTensorMaps* maps) { free(maps); }
int32_t tw_tensor_maps_count(const TwTensorMaps* maps) { return maps != NULL ? maps->count : 0; }
int32_t tw_tensor_maps_position(const TwTensorMaps* maps, int32_t index) { return maps->maps[index].described.position; }
int32_t tw_tensor_maps_base(const TwTensorMaps* maps, int32_t index) { return maps->maps[index].described.base; }

/* The value of a size, which is at least 0; -1 where it is not, or too large for a number. */
static int64_t value_of(const TilewrightSize* size, const TVMFFIAny* args) {
  int64_t value = size->factor;
  for (int i = 0; i < TILEWRIGHT_SIZE_ARGUMENTS; ++i) {
    if (size->arguments[i] >= 0 && __builtin_mul_overflow(value, args[size->arguments[i]].v_int64, &value)) return -1;
  }
  return value < 0 ? -1 : value;
}

/* Completes the tensor with what is known at the launch. Bytes that mean nothing are zero: tensors are compared by them. */
static int32_t resolve(const TilewrightTensorMap* map, const char* kernel, const TVMFFIAny* args, void* base, TilewrightTensor* out) {
  memset(out, 0, sizeof *out);
  out->base = (char*)base + map->offset;
  out->dtype = map->tensor.dtype;
  out->rank = map->tensor.rank;
  out->interleave = map->tensor.interleave;
  out->swizzle = map->tensor.swizzle;
  out->promotion = map->tensor.promotion;
  out->fills_nan = map->tensor.fills_nan;
  for (int32_t i = 0; i < map->tensor.rank; ++i) {
    int64_t extent = value_of(&map->dims[i], args), stride = i > 0 ? value_of(&map->strides[i - 1], args) : 0;
    if (extent < 0 || stride < 0) {
      return tw_fail("ValueError", "a tensor map of %s has a dimension %d that is negative or too large", kernel, (int)i);
    }
    out->dims[i] = (uint64_t)extent;
    if (i > 0) out->strides[i - 1] = (uint64_t)stride;
    out->box[i] = map->tensor.box[i];
    out->element_strides[i] = map->tensor.element_strides[i];
  }
  return 0;
}

int32_t tw_tensor_map_make(TwTensorMaps* maps, int32_t index, const char* kernel, DLDevice device, const TVMFFIAny* args, void* base,
                           void* out) {
  Map* map = &maps->maps[index];
  TilewrightTensor tensor;
  if (resolve(&map->described, kernel, args, base, &tensor) != 0) return -1;
  tw_mutex_lock(&maps->lock);
  for (int i = 0; i < KEPT; ++i) {
    const Made* made = &map->made[i];
    if (!made->is_made || made->device_id != device.device_id || memcmp(&made->tensor, &tensor, sizeof tensor) != 0) continue;
    memcpy(out, made->content, sizeof made->content);
    tw_mutex_unlock(&maps->lock);
    return 0;
  }
  int32_t status = tilewright_tensor_map(device, &tensor, out);
  if (status == 0) {
    Made* made = &map->made[map->next];
    map->next = (map->next + 1) % KEPT;
    *made = (Made){.device_id = device.device_id, .is_made = true};
    memcpy(&made->tensor, &tensor, sizeof tensor);
    memcpy(made->content, out, sizeof made->content);
  }
  tw_mutex_unlock(&maps->lock);
  return status;
}
