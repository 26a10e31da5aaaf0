/* Reference-counted objects with the tvm-ffi header: strings, bytes, functions, handles of the host language. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define STRONG_ONE ((uint64_t)1)
#define WEAK_ONE ((uint64_t)1 << 32)
#define STRONG_MASK ((uint64_t)0xffffffff)

static _Atomic(uint64_t)* counts(TilewrightObject* object) { return (_Atomic(uint64_t)*)&object->reference_counts; }

void tilewright_object_retain(TilewrightObject* object) {
  atomic_fetch_add_explicit(counts(object), STRONG_ONE, memory_order_relaxed);
}

void tilewright_object_release(TilewrightObject* object) {
  if (object == NULL) return;
  uint64_t before = atomic_fetch_sub_explicit(counts(object), STRONG_ONE, memory_order_acq_rel);
  if ((before & STRONG_MASK) != STRONG_ONE) return;
  if (before == (STRONG_ONE | WEAK_ONE)) { /* nobody holds a weak reference: one step */
    object->deleter(object, TW_DELETE_VALUE | TW_DELETE_MEMORY);
    return;
  }
  object->deleter(object, TW_DELETE_VALUE);
  if (atomic_fetch_sub_explicit(counts(object), WEAK_ONE, memory_order_acq_rel) == WEAK_ONE) {
    object->deleter(object, TW_DELETE_MEMORY);
  }
}

void tw_object_init(TilewrightObject* object, int32_t type_index, void (*deleter)(void*, int)) {
  object->reference_counts = STRONG_ONE | WEAK_ONE;
  object->type_index = type_index;
  object->padding = 0;
  object->deleter = deleter;
}

void tilewright_any_release(TVMFFIAny* value) {
  if (value->type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_release(value->v_obj);
  *value = (TVMFFIAny){0};
}

/* ---- strings and bytes ---- */
typedef struct {
  TilewrightObject header;
  TilewrightByteArray content;
  char characters[];
} StringObject;

static void delete_plain(void* self, int flags) {
  if (flags & TW_DELETE_MEMORY) free(self);
}

static int32_t make_characters(int32_t type_index, const char* data, size_t size, TVMFFIAny* out) {
  StringObject* string = size > SIZE_MAX / 2 ? NULL : malloc(sizeof *string + size + 1);
  if (string == NULL) return tw_fail("MemoryError", "no memory for a string of %zu bytes", size);
  tw_object_init(&string->header, type_index, delete_plain);
  if (size != 0) memcpy(string->characters, data, size);
  string->characters[size] = 0;
  string->content = (TilewrightByteArray){string->characters, size};
  *out = (TVMFFIAny){.type_index = type_index, .v_obj = &string->header};
  return 0;
}

int32_t tilewright_make_string(const char* data, size_t size, TVMFFIAny* out) {
  return make_characters(TILEWRIGHT_STRING, data, size, out);
}

int32_t tilewright_make_bytes(const char* data, size_t size, TVMFFIAny* out) {
  return make_characters(TILEWRIGHT_BYTES, data, size, out);
}

int32_t tilewright_get_bytes(const TVMFFIAny* value, const char** data, size_t* size) {
  switch (value->type_index) {
    case TILEWRIGHT_C_STRING:
      *data = value->v_c_str;
      *size = strlen(value->v_c_str);
      return 0;
    case TILEWRIGHT_SMALL_STRING:
    case TILEWRIGHT_SMALL_BYTES:
      *data = value->v_bytes;
      *size = value->zero_padding;
      return 0;
    case TILEWRIGHT_BYTE_ARRAY: {
      const TilewrightByteArray* array = value->v_ptr;
      *data = array->data;
      *size = array->size;
      return 0;
    }
    case TILEWRIGHT_STRING:
    case TILEWRIGHT_BYTES: {
      const StringObject* string = (const StringObject*)value->v_obj;
      *data = string->content.data;
      *size = string->content.size;
      return 0;
    }
    default:
      return tw_fail("TypeError", "expected a string, got a value of type index %d", (int)value->type_index);
  }
}

/* ---- functions ---- */
typedef struct {
  TilewrightObject header;
  TilewrightFunction safe_call; /* called with this object as self */
  void* cpp_call;               /* always NULL: no C++ behind it */
  TilewrightFunction call;
  void* self;
  void* owner;
  void (*release)(void* owner);
} FunctionObject;

static int32_t forward_call(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  const FunctionObject* function = self;
  return function->call(function->self, args, num_args, result);
}

static void delete_function(void* self, int flags) {
  FunctionObject* function = self;
  if ((flags & TW_DELETE_VALUE) && function->release != NULL) function->release(function->owner);
  if (flags & TW_DELETE_MEMORY) free(function);
}

int32_t tilewright_function_create(TilewrightFunction call, void* self, void* owner, void (*release)(void*),
                                   TilewrightObject** out) {
  FunctionObject* function = malloc(sizeof *function);
  if (function == NULL) return tw_fail("MemoryError", "no memory for a function object");
  tw_object_init(&function->header, TILEWRIGHT_FUNCTION, delete_function);
  function->safe_call = forward_call;
  function->cpp_call = NULL;
  function->call = call;
  function->self = self;
  function->owner = owner;
  function->release = release;
  *out = &function->header;
  return 0;
}

int32_t tilewright_function_call(TilewrightObject* function, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  if (function == NULL || function->type_index != TILEWRIGHT_FUNCTION) {
    return tw_fail("TypeError", "the object called is not a function");
  }
  return ((FunctionObject*)function)->safe_call(function, args, num_args, result);
}

/* ---- values of the host language ---- */
typedef struct {
  TilewrightObject header;
  void* handle;
  void (*release)(void*);
} OpaqueObject;

static void delete_opaque(void* self, int flags) {
  OpaqueObject* opaque = self;
  if ((flags & TW_DELETE_VALUE) && opaque->release != NULL) opaque->release(opaque->handle);
  if (flags & TW_DELETE_MEMORY) free(opaque);
}

int32_t tilewright_make_opaque(void* handle, void (*release)(void*), TVMFFIAny* out) {
  OpaqueObject* opaque = malloc(sizeof *opaque);
  if (opaque == NULL) return tw_fail("MemoryError", "no memory for an object handle");
  tw_object_init(&opaque->header, TILEWRIGHT_PYTHON, delete_opaque);
  opaque->handle = handle;
  opaque->release = release;
  *out = (TVMFFIAny){.type_index = TILEWRIGHT_PYTHON, .v_obj = &opaque->header};
  return 0;
}

void* tilewright_opaque_handle(const TilewrightObject* object) { return ((const OpaqueObject*)object)->handle; }
