/* The tensor maps of a kernel, from the description that its module carries: the fields of device_module.py's TensorMap. */
#include "device_tensor_map.h"
#include "graph.h"
#include "json.h"

/* A number that is not negative. */
static bool read_number(const TwJson* map, const char* name, int64_t most, int64_t* out) {
  return tw_json_integer(tw_json_member(map, name), most, out);
}

/* A number, or a list of a factor and positions of arguments. */
static bool read_size(const TwJson* value, TilewrightSize* out) {
  for (int i = 0; i < TILEWRIGHT_SIZE_ARGUMENTS; ++i) out->arguments[i] = -1;
  if (value->kind != JSON_ARRAY) return tw_json_integer(value, INT64_MAX, &out->factor);
  if (value->count < 1 || value->count > 1 + TILEWRIGHT_SIZE_ARGUMENTS || !tw_json_integer(value->first, INT64_MAX, &out->factor)) return false;
  int i = 0;
  for (const TwJson* at = value->first->next; at != NULL; at = at->next, ++i) {
    int64_t position;
    if (!tw_json_integer(at, INT32_MAX, &position)) return false;
    out->arguments[i] = (int32_t)position;
  }
  return true;
}

/* The values of one of the lists; false unless there are `count`. */
static bool read_sizes(const TwJson* list, int64_t count, TilewrightSize* out) {
  if (list == NULL || list->kind != JSON_ARRAY || list->count != count) return false;
  for (const TwJson* at = list->first; at != NULL; at = at->next, ++out) {
    if (!read_size(at, out)) return false;
  }
  return true;
}

static bool read_counts(const TwJson* list, int64_t count, uint32_t* out) {
  if (list == NULL || list->kind != JSON_ARRAY || list->count != count) return false;
  for (const TwJson* at = list->first; at != NULL; at = at->next, ++out) {
    int64_t value;
    if (!tw_json_integer(at, UINT32_MAX, &value)) return false;
    *out = (uint32_t)value;
  }
  return true;
}

bool tw_read_tensor_map(const TwJson* map, TilewrightTensorMap* out) {
  const TwJson *dims = tw_json_member(map, "dims"), *dtype = tw_json_member(map, "dtype"), *fill = tw_json_member(map, "fill_nan");
  int64_t rank = dims != NULL && dims->kind == JSON_ARRAY ? dims->count : 0;
  int64_t position, base, interleave, swizzle, promotion;
  *out = (TilewrightTensorMap){0};
  if (rank < 1 || rank > TILEWRIGHT_TENSOR_MAP_DIMENSIONS || dtype == NULL || dtype->kind != JSON_STRING || fill == NULL) return false;
  if (!tw_parse_dtype(dtype->text, &out->tensor.dtype)) return false;
  if (!read_sizes(dims, rank, out->dims) || !read_sizes(tw_json_member(map, "strides"), rank - 1, out->strides)) return false;
  if (!read_counts(tw_json_member(map, "box"), rank, out->tensor.box)) return false;
  if (!read_counts(tw_json_member(map, "element_strides"), rank, out->tensor.element_strides)) return false;
  if (!read_number(map, "position", INT32_MAX, &position) || !read_number(map, "base", INT32_MAX, &base)) return false;
  if (!read_number(map, "offset", INT64_MAX, &out->offset) || !read_number(map, "interleave", INT32_MAX, &interleave)) return false;
  if (!read_number(map, "swizzle", INT32_MAX, &swizzle) || !read_number(map, "l2_promotion", INT32_MAX, &promotion)) return false;
  out->position = (int32_t)position;
  out->base = (int32_t)base;
  out->tensor.rank = (int32_t)rank;
  out->tensor.interleave = (int32_t)interleave;
  out->tensor.swizzle = (int32_t)swizzle;
  out->tensor.promotion = (int32_t)promotion;
  out->tensor.fills_nan = fill->number != 0;
  return true;
}
