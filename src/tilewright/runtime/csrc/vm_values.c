/* Values of the virtual machine beside tensors: data of algebraic types, references, closures. */
#include <stdlib.h>

#include "vm.h"

/* ---- ending values ----
 * A list has as many objects in each other as it has elements, so what an object holds is not released by recursion:
 * objects that end while another is being ended wait in a list, linked through their counts, which nobody reads any more. */
static _Thread_local TilewrightObject* waiting;
static _Thread_local bool ending;

static void release_values(TVMFFIAny* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) tilewright_any_release(&values[i]);
}

static void end_value(TilewrightObject* object) {
  if (object->type_index == TILEWRIGHT_DATA) {
    TwData* data = (TwData*)object;
    release_values(data->fields, data->size);
  } else if (object->type_index == TILEWRIGHT_REFERENCE) {
    release_values(&((TwReference*)object)->value, 1);
  } else {
    TwClosure* closure = (TwClosure*)object;
    release_values(closure->captured, closure->num_captured);
    tilewright_vm_release(closure->vm);
  }
}

static void delete_compound(void* self, int flags) {
  TilewrightObject* object = self;
  if (flags != (TW_DELETE_VALUE | TW_DELETE_MEMORY)) { /* somebody has a weak reference */
    if (flags & TW_DELETE_VALUE) end_value(object);
    if (flags & TW_DELETE_MEMORY) free(object);
    return;
  }
  object->reference_counts = (uint64_t)(uintptr_t)waiting;
  waiting = object;
  if (ending) return;
  ending = true;
  while (waiting != NULL) {
    TilewrightObject* next = waiting;
    waiting = (TilewrightObject*)(uintptr_t)next->reference_counts;
    end_value(next);
    free(next);
  }
  ending = false;
}

/* ---- making them ---- */
static void* create(int32_t type_index, size_t head, int64_t count) {
  TilewrightObject* object = NULL;
  if (count >= 0 && (uint64_t)count < (SIZE_MAX - head) / sizeof(TVMFFIAny)) {
    object = calloc(1, head + (size_t)count * sizeof(TVMFFIAny));
  }
  if (object == NULL) {
    tw_fail("MemoryError", "no memory for a value of %lld parts", (long long)count);
    return NULL;
  }
  tw_object_init(object, type_index, delete_compound);
  return object;
}

TwData* tw_data_create(int64_t tag, int64_t size) {
  TwData* data = create(TILEWRIGHT_DATA, sizeof *data, size);
  if (data != NULL) {
    data->tag = tag;
    data->size = size;
  }
  return data;
}

TwReference* tw_reference_create(void) { return create(TILEWRIGHT_REFERENCE, sizeof(TwReference), 0); }

TwClosure* tw_closure_create(TilewrightVM* vm, int32_t function, int32_t num_captured) {
  TwClosure* closure = create(TILEWRIGHT_FUNCTION, sizeof *closure, num_captured);
  if (closure != NULL) {
    closure->safe_call = tw_vm_call_closure;
    closure->vm = vm;
    closure->function = function;
    closure->num_captured = num_captured;
    tilewright_vm_retain(vm);
  }
  return closure;
}

const TwClosure* tw_closure_of(const TilewrightVM* vm, const TVMFFIAny* value) {
  if (value->type_index != TILEWRIGHT_FUNCTION) return NULL;
  const TwClosure* closure = (const TwClosure*)value->v_obj;
  return closure->safe_call == tw_vm_call_closure && closure->vm == vm ? closure : NULL;
}

/* ---- for hosts ---- */
int32_t tilewright_data_create(int64_t tag, const TVMFFIAny* fields, int64_t size, TilewrightObject** out) {
  TwData* data = tw_data_create(tag, size);
  if (data == NULL) return -1;
  for (int64_t i = 0; i < size; ++i) {
    data->fields[i] = fields[i];
    tw_retain_any(&data->fields[i]);
  }
  *out = &data->header;
  return 0;
}

int64_t tilewright_data_tag(const TilewrightObject* data) { return ((const TwData*)data)->tag; }
int64_t tilewright_data_size(const TilewrightObject* data) { return ((const TwData*)data)->size; }

int32_t tilewright_data_field(const TilewrightObject* data, int64_t index, TVMFFIAny* out) {
  const TwData* found = (const TwData*)data;
  if (index < 0 || index >= found->size) {
    return tw_fail("IndexError", "the value has %lld fields; there is no field %lld", (long long)found->size, (long long)index);
  }
  *out = found->fields[index];
  tw_retain_any(out);
  return 0;
}

int32_t tilewright_reference_create(const TVMFFIAny* value, TilewrightObject** out) {
  TwReference* reference = tw_reference_create();
  if (reference == NULL) return -1;
  reference->value = *value;
  tw_retain_any(value);
  *out = &reference->header;
  return 0;
}

void tilewright_reference_read(const TilewrightObject* reference, TVMFFIAny* out) {
  *out = ((const TwReference*)reference)->value;
  tw_retain_any(out);
}
