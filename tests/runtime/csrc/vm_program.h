/* A program of the virtual machine that uses every instruction, and the kernels that it calls. */
#ifndef VM_PROGRAM_H_
#define VM_PROGRAM_H_

#include "check.h"
#include "tilewright.h"

enum { COUNT, SUM, BUILD, PLUS, MAIN, FAIL, FOREIGN };

typedef struct {
  char data[8192];
  size_t size;
} Bytes;

static void write_number(Bytes* bytes, int64_t number) {
  CHECK(bytes->size + 8 <= sizeof bytes->data);
  memcpy(bytes->data + bytes->size, &number, 8);
  bytes->size += 8;
}

static void write_text(Bytes* bytes, const char* text) {
  size_t size = strlen(text);
  write_number(bytes, (int64_t)size);
  memcpy(bytes->data + bytes->size, text, size);
  bytes->size += size;
}

/* A function of parameters without types. */
static void write_function(Bytes* bytes, const char* name, int64_t registers, int64_t params, const int64_t* code, size_t num_bytes) {
  write_text(bytes, name);
  write_number(bytes, registers);
  write_number(bytes, params);
  for (int64_t i = 0; i < params; ++i) {
    write_text(bytes, "x");
    write_number(bytes, 0);
  }
  write_number(bytes, (int64_t)num_bytes / 8);
  for (size_t i = 0; i < num_bytes / 8; ++i) write_number(bytes, code[i]);
}

#define INT32 (32 << 8 | 1 << 16)
#define INT64 (64 << 8 | 1 << 16)

/* if $0 == 0 then the code that follows, else the code `no` words further on */
#define UNLESS_ZERO(no) 14, 1, 0, /**/ 10, 0, 1, 5, no
/* $1 = $0 - 1 */
#define DECREMENT 16, 2, -1, 4, INT32, /**/ 5, 1, 2, 0, INT32, 0, /**/ 4, 0, 1, 2, 0, 1

static Bytes vm_program(void) {
  Bytes bytes = {.size = 8};
  memcpy(bytes.data, "TWVM0001", 8);
  write_number(&bytes, 1);
  write_text(&bytes, "a failure");
  write_number(&bytes, 3); /* kernels */
  write_text(&bytes, "decrement");
  write_text(&bytes, "subtract");
  write_text(&bytes, "add");
  write_text(&bytes, "add");
  write_text(&bytes, "fail");
  write_text(&bytes, "an operator");
  write_number(&bytes, 2); /* constants: [1], and one that the host gives */
  int64_t constant[] = {1, INT64, 1, 1, 8, 1, 0};
  for (size_t i = 0; i < sizeof constant / 8; ++i) write_number(&bytes, constant[i]);
  write_number(&bytes, 7); /* functions */
  const int64_t count[] = {UNLESS_ZERO(7), 1, 0, DECREMENT, 2, 3, COUNT, 1, 1, 1, 3};
  write_function(&bytes, "count", 4, 1, count, sizeof count);
  const int64_t sum[] = {UNLESS_ZERO(7), 1, 0, DECREMENT, 2, 3, SUM, 1, 1, 16, 2, -1, 4, INT32, 5, 4, 2, 0, INT32, 0,
                         4, 1, 1, 3, 0, 3, 4, 1, 4};
  write_function(&bytes, "sum", 5, 1, sum, sizeof sum);
  const int64_t build[] = {14, 2, 0, 10, 0, 2, 5, 7, 1, 1, 16, 2, -1, 4, INT32, 5, 3, 2, 0, INT32, 0, 4, 0, 1, 2, 0, 3,
                           7, 4, 7, 2, 0, 1, 23, 2, 1, 2, 2, 5, BUILD, 2, 3, 4, 1, 5};
  write_function(&bytes, "build", 6, 2, build, sizeof build);
  const int64_t plus[] = {16, 2, -1, 4, INT32, 5, 3, 2, 0, INT32, 0, 4, 1, 1, 3, 0, 1, 3, 1, 3};
  write_function(&bytes, "plus", 4, 2, plus, sizeof plus);
  const int64_t main_code[] = {
      8, 1, PLUS, 1, 0,       /* $1 = closure of plus with $0 */
      3, 2, 1, 1, 0,          /* $2 = $1($0) */
      20, 3, 2,               /* $3 = reference to $2 */
      21, 4, 3,               /* $4 = what it holds */
      22, 3, 0,               /* it holds $0 */
      21, 5, 3,               /* $5 = what it holds now */
      11, 6, 0,               /* $6 = [1] */
      18, 7, 5, 6,            /* $7 = $5 as a vector */
      17, 8, 7,               /* $8 = its shape */
      16, 9, 8, 0, INT32,     /* $9 = storage for it */
      6, 10, 9, 0, INT32, 8,  /* $10 = a tensor there */
      4, 1, 1, 3, 7, 7, 10,   /* $10 = $7 + $7 */
      19, 11, 10, 1, 0, 1, 0, /* $11 = a copy */
      7, 12, 5, 3, 4, 11, 1,  /* $12 = data of tag 5 */
      13, 13, 12,             /* $13 = its tag */
      14, 14, 5,              /* $14 = 5 */
      10, 13, 14, 5, 7,       /* if they are the same */
      12, 6,                  /* go on behind the failure */
      15, 0,                  /* fail */
      15, 0,                  /* fail */
      9, 15, 12, 1,           /* $15 = field 1 */
      0, 16, 15,              /* $16 = $15 */
      23, 2, 9, 10,           /* end $9 and $10 */
      11, 9, 1,               /* $9 = the other constant */
      7, 17, 0, 3, 4, 16, 9,  /* a tuple */
      1, 17};
  write_function(&bytes, "main", 18, 1, main_code, sizeof main_code);
  const int64_t fail_code[] = {4, 2, 0, 1, 0, 1, 0};
  write_function(&bytes, "fail", 1, 1, fail_code, sizeof fail_code);
  const int64_t foreign[] = {3, 2, 0, 1, 1, 1, 2};
  write_function(&bytes, "foreign", 3, 2, foreign, sizeof foreign);
  return bytes;
}

/* The only element of a tensor of 32-bit integers; NULL for anything else. */
static int32_t* number_of(const TVMFFIAny* value) {
  DLTensor* tensor = value->type_index == TILEWRIGHT_DLTENSOR ? value->v_ptr
                     : value->type_index == TILEWRIGHT_TENSOR ? tilewright_tensor_dltensor(value->v_obj)
                                                              : NULL;
  if (tensor == NULL || tensor->dtype.code != kDLInt || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1) return NULL;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] != 1) return NULL;
  }
  return (int32_t*)((char*)tensor->data + tensor->byte_offset);
}

static int32_t reject(void) {
  tilewright_set_error("ValueError", "the kernel cannot take these arguments");
  return -1;
}

static int32_t vm_decrement(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)result;
  if (num_args != 2 || number_of(&args[0]) == NULL || number_of(&args[1]) == NULL) return reject();
  *number_of(&args[1]) = (int32_t)((uint32_t)*number_of(&args[0]) - 1);
  return 0;
}

static int32_t vm_add(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  if (num_args != 3 || number_of(&args[0]) == NULL || number_of(&args[1]) == NULL || number_of(&args[2]) == NULL) return reject();
  *number_of(&args[2]) = (int32_t)((uint32_t)*number_of(&args[0]) + (uint32_t)*number_of(&args[1]));
  return tilewright_make_string("a result nobody wants", 21, result);
}

static int32_t vm_fail(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  (void)args;
  (void)num_args;
  (void)result;
  return reject();
}

static TilewrightObject* vm_find(void* context, const char* name) {
  (void)context;
  TilewrightObject* function = NULL;
  TilewrightFunction call = strcmp(name, "decrement") == 0 ? vm_decrement
                            : strcmp(name, "add") == 0     ? vm_add
                            : strcmp(name, "fail") == 0    ? vm_fail
                                                           : NULL;
  if (call != NULL) tilewright_function_create(call, NULL, NULL, NULL, &function);
  return function;
}

/* A scalar; 0 when there is no memory for it. */
static TVMFFIAny vm_scalar(int32_t number) {
  TVMFFIAny value = {.type_index = TILEWRIGHT_TENSOR};
  if (tilewright_tensor_create(NULL, 0, (DLDataType){kDLInt, 32, 1}, (DLDevice){kDLCPU, 0}, &value.v_obj) != 0) return (TVMFFIAny){0};
  *number_of(&value) = number;
  return value;
}

#endif
