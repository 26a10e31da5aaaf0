/* The virtual machine's program in memory, and the values that it works on. Internal to the runtime.
 *
 * A program is functions of instructions on numbered registers. An instruction is a row of 64-bit words: its code, then
 * its operands, laid out as TW_VM_LAYOUTS says. */
#ifndef TILEWRIGHT_VM_H_
#define TILEWRIGHT_VM_H_

#include "device.h"

typedef enum {
  TW_VM_MOVE,
  TW_VM_RET,
  TW_VM_INVOKE,
  TW_VM_INVOKE_CLOSURE,
  TW_VM_INVOKE_PACKED,
  TW_VM_ALLOC_TENSOR,
  TW_VM_ALLOC_TENSOR_REG,
  TW_VM_ALLOC_DATA,
  TW_VM_ALLOC_CLOSURE,
  TW_VM_GET_FIELD,
  TW_VM_IF,
  TW_VM_LOAD_CONST,
  TW_VM_GOTO,
  TW_VM_GET_TAG,
  TW_VM_LOAD_CONSTI,
  TW_VM_FATAL,
  TW_VM_ALLOC_STORAGE,
  TW_VM_SHAPE_OF,
  TW_VM_RESHAPE_TENSOR,
  TW_VM_DEVICE_COPY,
  TW_VM_ALLOC_REF,
  TW_VM_REF_READ,
  TW_VM_REF_WRITE,
  TW_VM_KILL,
  TW_VM_ALLOC_STORAGE_ON,
  TW_VM_LOAD_CONST_ON,
  TW_VM_NUM_OPCODES
} TwVMOpcode;

/* d: register that is written; r: register that is read; o: register or -1; R: a count and registers that are read;
 * f: function; k: kernel; c: constant; s: text; t: data type; i: number; n: number that is not negative; N: a count and
 * such numbers; j: words from this instruction to another one further on. A device is two numbers: its kind, and its
 * position among the machine's devices of that kind. */
#define TW_VM_LAYOUTS                                                                                                       \
  {                                                                                                                         \
    "dr", "r", "dfR", "drR", "knR", "drntN", "drntr", "diR", "dfR", "drn", "rrjj", "dc", "j", "dr", "di", "s", "dont", "dr", \
        "drr", "drnnnn", "dr", "dr", "rr", "R", "dontnn", "dcnn"                                                            \
  }

typedef struct {
  const char* name;
  bool is_tensor; /* false: any value */
  int32_t place;  /* of the device that a tensor is to be on */
  DLDataType dtype;
  int32_t ndim;
  int64_t* shape; /* -1: any extent */
} TwVMParam;

typedef struct {
  const char* name;
  TwVMParam* params;
  int32_t num_params, num_registers;
  int64_t* code;
  int64_t num_words;
} TwVMFunction;

typedef struct {
  const char* name;
  const char* label; /* what it computes, for messages */
  TilewrightObject* function;
} TwVMKernel;

typedef struct TwPool TwPool;

struct TilewrightVM {
  _Atomic int32_t references;
  TwVMFunction* functions;
  TwVMKernel* kernels;
  TilewrightObject** constants;
  TilewrightObject*** placed; /* for each place, NULL or the constants that instructions load there */
  const DLDevice* devices;    /* by place: the host first, then the others that the machine was given */
  int32_t num_devices;
  const char** texts;
  TwVMParam* outputs; /* the tensors that `main` gives, tuples flattened; none where they are not known, or not tensors */
  int32_t num_functions, num_kernels, num_constants, num_texts, num_outputs;
  int64_t most_frames, most_instructions; /* 0 instructions: no limit */
  TwPool* pool;
  TilewrightCallLog* log; /* of the instructions that make and move tensors; NULL: nobody measures them */
  struct TwVMMemory* memory; /* all that is freed with the program */
};

/* The place of a device that a program names; -1 when the machine has none such. */
int32_t tw_vm_place(const TilewrightVM* vm, int64_t device_type, int64_t position);

/* Fills an empty program from its bytes. Nothing in them is trusted. */
int32_t tw_vm_read(TilewrightVM* vm, const char* data, size_t size, TilewrightObject* const* constants, int32_t num_constants,
                   TilewrightFind find, void* context);

/* ---- memory that tensors take and give back ---- */
TwPool* tw_pool_create(bool keeps_blocks, const DLDevice* devices, int32_t num_devices); /* NULL with an error */
void tw_pool_release(TwPool* pool);
void tw_pool_set_limit(TwPool* pool, uint64_t num_bytes); /* of all tensors together; 0: none */

/* A storage object with one reference: `num_bytes` of memory of the device at `place` in the pool's list, aligned to 64
 * bytes, not initialised. */
int32_t tw_pool_storage(TwPool* pool, int32_t place, uint64_t num_bytes, TilewrightObject** out);
uint64_t tw_storage_bytes(const TilewrightObject* storage);

/* A compact tensor at an offset of a storage, which it keeps alive. */
int32_t tw_storage_tensor(TilewrightObject* storage, uint64_t offset, const int64_t* shape, int32_t ndim, DLDataType dtype,
                          TilewrightObject** out);

/* The same in a storage of its own. */
int32_t tw_pool_tensor(TwPool* pool, int32_t place, const int64_t* shape, int32_t ndim, DLDataType dtype, TilewrightObject** out);

/* Bytes of a compact tensor; false when the shape is not one, or too large. */
bool tw_tensor_bytes(const int64_t* shape, int32_t ndim, DLDataType dtype, uint64_t* out);

/* ---- values beside tensors ---- */
typedef struct {
  TilewrightObject header;
  int64_t tag;
  int64_t size;
  TVMFFIAny fields[];
} TwData;

typedef struct {
  TilewrightObject header;
  TVMFFIAny value;
} TwReference;

/* A function with some of its arguments. To others it is a function object: the first fields are those of one. */
typedef struct {
  TilewrightObject header;
  TilewrightFunction safe_call;
  void* cpp_call;
  TilewrightVM* vm;
  int32_t function;
  int32_t num_captured;
  TVMFFIAny captured[];
} TwClosure;

/* New objects whose values are None; NULL with an error. */
TwData* tw_data_create(int64_t tag, int64_t size);
TwReference* tw_reference_create(void);
TwClosure* tw_closure_create(TilewrightVM* vm, int32_t function, int32_t num_captured);

/* The closure, if it is one of this machine; else NULL. */
const TwClosure* tw_closure_of(const TilewrightVM* vm, const TVMFFIAny* value);

/* What calling a closure does; it is called with the closure as `self`. */
int32_t tw_vm_call_closure(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);

/* ---- instructions: see vm_operations.c ---- */

/* The function that runs. */
typedef struct {
  TilewrightVM* vm;
  const TwVMFunction* function;
} TwVMCall;

int32_t tw_vm_invoke_packed(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_invoke_foreign(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_tensor(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_data(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_closure(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_get_field(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_test(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers, bool* holds);
int32_t tw_vm_get_tag(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_storage(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_shape(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_reshape(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_load_placed(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_device_copy(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_make_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_read_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);
int32_t tw_vm_write_reference(const TwVMCall* call, const int64_t* code, TVMFFIAny* registers);

int32_t tw_copy_tensor(TwPool* pool, int32_t place, const DLTensor* tensor, TilewrightObject** out);

static inline char* tw_data_of(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }

/* NULL for a value that is not a tensor. */
static inline DLTensor* tw_tensor_of(const TVMFFIAny* value) {
  return value->type_index == TILEWRIGHT_TENSOR ? tilewright_tensor_dltensor(value->v_obj) : NULL;
}

/* ---- references in values ---- */
static inline void tw_retain_any(const TVMFFIAny* value) {
  if (value->type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_retain(value->v_obj);
}

static inline TVMFFIAny tw_copy_of(const TVMFFIAny* value) {
  tw_retain_any(value);
  return *value;
}

/* Moves a value into a register. */
static inline void tw_put(TVMFFIAny* slot, TVMFFIAny value) {
  TVMFFIAny before = *slot;
  *slot = value;
  if (before.type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_release(before.v_obj);
}

static inline void tw_put_object(TVMFFIAny* slot, TilewrightObject* object) {
  tw_put(slot, (TVMFFIAny){.type_index = object->type_index, .v_obj = object});
}

static inline void tw_put_integer(TVMFFIAny* slot, int64_t number) {
  tw_put(slot, (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = number});
}

#endif
