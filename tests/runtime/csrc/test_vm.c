/* The virtual machine: every instruction runs, recursion and lists may be as deep as memory allows, and no bytes can
 * break it. */
#include "vm_program.h"

static TilewrightVM* create(const Bytes* bytes, TilewrightObject* constant, int32_t keeps_memory) {
  TilewrightObject* constants[2] = {NULL, constant};
  TilewrightVM* vm = NULL;
  return tilewright_vm_create(bytes->data, bytes->size, constants, 2, vm_find, NULL, keeps_memory, &vm) == 0 ? vm : NULL;
}

static TVMFFIAny run(TilewrightVM* vm, int32_t function, TVMFFIAny first, TVMFFIAny second, int32_t count) {
  TVMFFIAny args[2] = {first, second}, result = {0};
  CHECK(tilewright_vm_invoke(vm, function, args, count, &result) == 0);
  return result;
}

static int32_t run_number(TilewrightVM* vm, int32_t function, int32_t number) {
  TVMFFIAny argument = vm_scalar(number);
  TVMFFIAny result = run(vm, function, argument, (TVMFFIAny){0}, 1);
  int32_t found = *number_of(&result);
  tilewright_any_release(&argument);
  tilewright_any_release(&result);
  return found;
}

static void expect_failure(TilewrightVM* vm, int32_t function, const TVMFFIAny* args, int32_t count, const char* kind, const char* part) {
  TVMFFIAny result = {0};
  CHECK(tilewright_vm_invoke(vm, function, args, count, &result) != 0);
  CHECK_TEXT(tilewright_error_kind(), kind);
  if (strstr(tilewright_error_message(), part) == NULL) CHECK_TEXT(tilewright_error_message(), part);
  tilewright_clear_error();
}

static void instructions(TilewrightVM* vm, TilewrightObject* constant) {
  TVMFFIAny argument = vm_scalar(21);
  TVMFFIAny result = run(vm, MAIN, argument, (TVMFFIAny){0}, 1);
  CHECK(result.type_index == TILEWRIGHT_DATA && tilewright_data_tag(result.v_obj) == 0 && tilewright_data_size(result.v_obj) == 3);
  for (int64_t i = 0; i < 2; ++i) {
    TVMFFIAny field;
    CHECK(tilewright_data_field(result.v_obj, i, &field) == 0);
    CHECK(*number_of(&field) == 42);
    tilewright_any_release(&field);
  }
  TVMFFIAny field;
  CHECK(tilewright_data_field(result.v_obj, 2, &field) == 0 && field.v_obj == constant);
  tilewright_any_release(&field);
  CHECK(tilewright_data_field(result.v_obj, 3, &field) != 0);
  tilewright_clear_error();
  tilewright_any_release(&result);
  tilewright_any_release(&argument);
}

static void recursion(TilewrightVM* vm) {
  CHECK(run_number(vm, COUNT, 100000) == 0); /* in one frame */
  CHECK(run_number(vm, SUM, 10000) == 50005000);
  tilewright_vm_set_limits(vm, 100, 0, 0);
  CHECK(run_number(vm, COUNT, 1000) == 0);
  TVMFFIAny argument = vm_scalar(200);
  expect_failure(vm, SUM, &argument, 1, "RuntimeError", "nested more than 100 deep");
  tilewright_vm_set_limits(vm, 100, 50, 0);
  expect_failure(vm, COUNT, &argument, 1, "RuntimeError", "more than 50 instructions");
  tilewright_vm_set_limits(vm, 1 << 20, 0, 1024);
  expect_failure(vm, SUM, &argument, 1, "MemoryError", "above its limit");
  tilewright_vm_set_limits(vm, 1 << 20, 0, 0);
  tilewright_any_release(&argument);
}

/* A list of a hundred thousand elements ends without recursion, and its memory is used again. */
static void lists(TilewrightVM* vm, int32_t length) {
  TilewrightObject* empty;
  CHECK(tilewright_data_create(8, NULL, 0, &empty) == 0);
  TVMFFIAny count = vm_scalar(length), end = {.type_index = TILEWRIGHT_DATA, .v_obj = empty};
  for (int round = 0; round < 2; ++round) {
    TVMFFIAny list = run(vm, BUILD, count, end, 2);
    CHECK(tilewright_data_tag(list.v_obj) == 7);
    tilewright_any_release(&list);
  }
  tilewright_any_release(&count);
  tilewright_object_release(empty);
}

static int32_t triple(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self;
  CHECK(num_args == 1);
  *result = vm_scalar(3 * *number_of(&args[0]));
  return 0;
}

static void functions(TilewrightVM* vm) {
  TilewrightObject *host, *own;
  CHECK(tilewright_function_create(triple, NULL, NULL, NULL, &host) == 0);
  CHECK(tilewright_vm_function(vm, COUNT, &own) == 0);
  TVMFFIAny five = vm_scalar(5), callee = {.type_index = TILEWRIGHT_FUNCTION, .v_obj = host};
  TVMFFIAny result = run(vm, FOREIGN, callee, five, 2);
  CHECK(*number_of(&result) == 15);
  tilewright_any_release(&result);
  callee.v_obj = own;
  result = run(vm, FOREIGN, callee, five, 2);
  CHECK(*number_of(&result) == 0);
  tilewright_any_release(&result);
  CHECK(tilewright_function_call(own, &five, 1, &result) == 0 && *number_of(&result) == 0);
  tilewright_any_release(&result);
  tilewright_any_release(&five);
  tilewright_object_release(host);
  tilewright_object_release(own);
  CHECK(tilewright_vm_function(vm, 99, &own) != 0);
  tilewright_clear_error();
  CHECK(tilewright_vm_function_index(vm, "sum") == SUM && tilewright_vm_function_index(vm, "none") == -1);
  CHECK(tilewright_vm_num_params(vm, BUILD) == 2 && tilewright_vm_num_params(vm, 99) == -1);
}

static void failures(TilewrightVM* vm) {
  TVMFFIAny number = vm_scalar(1), integer = {.type_index = TILEWRIGHT_INT, .v_int64 = 1};
  expect_failure(vm, FAIL, &number, 1, "ValueError", "an operator: the kernel cannot take these arguments (kernel fail, called by @fail)");
  expect_failure(vm, FAIL, &number, 0, "TypeError", "@fail takes 1 arguments, 0 were given");
  expect_failure(vm, COUNT, &integer, 1, "TypeError", "neither a tensor nor another value");
  expect_failure(vm, 99, &number, 1, "IndexError", "no function 99");
  TVMFFIAny two[2] = {number, number};
  expect_failure(vm, FOREIGN, two, 2, "TypeError", "a function is needed");
  TilewrightObject* wide;
  int64_t shape[1] = {2};
  CHECK(tilewright_tensor_create(shape, 1, (DLDataType){kDLInt, 32, 1}, (DLDevice){kDLCPU, 0}, &wide) == 0);
  TVMFFIAny vector = {.type_index = TILEWRIGHT_TENSOR, .v_obj = wide};
  expect_failure(vm, COUNT, &vector, 1, "TypeError", "one integer or bool is needed");
  tilewright_object_release(wide);
  tilewright_any_release(&number);
}

/* A tensor that the caller only lends is copied, also from between others. */
static void lent(TilewrightVM* vm) {
  int32_t numbers[4] = {9, 9, 7, 9};
  int64_t strides[1] = {2}, one[1] = {1};
  DLTensor tensor = {numbers + 2, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, one, strides, 0};
  TVMFFIAny argument = {.type_index = TILEWRIGHT_DLTENSOR, .v_ptr = &tensor};
  TVMFFIAny result = run(vm, SUM, argument, (TVMFFIAny){0}, 1);
  CHECK(*number_of(&result) == 28);
  tilewright_any_release(&result);
}

/* Whatever a program consists of: an error or a result. */
static void changed_programs(const Bytes* good, TilewrightObject* constant, int rounds) {
  uint32_t random = 12345;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = *good;
    int changes = 1 + round % 3;
    for (int i = 0; i < changes; ++i) {
      random = random * 1664525u + 1013904223u;
      size_t place = (random >> 8) % bytes.size;
      bytes.data[place] = round % 2 ? (char)(random >> 3) : (char)((random >> 4) % 24);
    }
    if (round % 11 == 0) bytes.size = (random >> 5) % (bytes.size + 1);
    TilewrightVM* vm = create(&bytes, constant, 1);
    if (vm == NULL) {
      CHECK(tilewright_error_kind() != NULL);
      tilewright_clear_error();
      continue;
    }
    tilewright_vm_set_limits(vm, 16, 2000, 1 << 20);
    for (int32_t function = 0; function < tilewright_vm_num_functions(vm); ++function) {
      TVMFFIAny args[2] = {vm_scalar(4), vm_scalar(2)}, result = {0};
      if (tilewright_vm_invoke(vm, function, args, tilewright_vm_num_params(vm, function), &result) != 0) tilewright_clear_error();
      tilewright_any_release(&result);
      tilewright_any_release(&args[0]);
      tilewright_any_release(&args[1]);
      if (tilewright_vm_num_params(vm, function) > 2) break;
    }
    tilewright_vm_release(vm);
  }
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  Bytes bytes = vm_program();
  TVMFFIAny constant = vm_scalar(99);
  for (int32_t keeps_memory = 0; keeps_memory < 2; ++keeps_memory) {
    TilewrightVM* vm = create(&bytes, constant.v_obj, keeps_memory);
    if (vm == NULL) CHECK_TEXT(tilewright_error_message(), "");
    instructions(vm, constant.v_obj);
    recursion(vm);
    lists(vm, 100000);
    functions(vm);
    failures(vm);
    lent(vm);
    /* A result outlives the machine. */
    TVMFFIAny argument = vm_scalar(3);
    TVMFFIAny result = run(vm, SUM, argument, (TVMFFIAny){0}, 1);
    tilewright_vm_release(vm);
    CHECK(*number_of(&result) == 6);
    tilewright_any_release(&result);
    tilewright_any_release(&argument);
  }
  CHECK(create(&bytes, NULL, 1) == NULL);
  CHECK(strstr(tilewright_error_message(), "a constant is missing") != NULL);
  changed_programs(&bytes, constant.v_obj, rounds);
  tilewright_any_release(&constant);
  tilewright_clear_error();
  return 0;
}
