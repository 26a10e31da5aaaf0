/* Modules of kernels: what a kernel is given, on which device it runs, when it is loaded, and that nothing is left. */
#include "../device/guarded_device.c"
#include "check.h"

static const DLDevice cpu = {kDLCPU, 0};
static const DLDataType float32 = {kDLFloat, 32, 1}, float64 = {kDLFloat, 64, 1}, pointer = {kDLOpaqueHandle, 64, 1};
static const DLDataType int64 = {kDLInt, 64, 1}, int32 = {kDLInt, 32, 1}, int8 = {kDLInt, 8, 1}, boolean = {kDLBool, 8, 1};

static void fails(int32_t status, const char* kind, const char* message) {
  CHECK(status == -1);
  CHECK_TEXT(tilewright_error_kind(), kind);
  CHECK_TEXT(tilewright_error_message(), message);
  tilewright_clear_error();
}

/* to[i] = from[i] * scale + shift */
static void scale(void** args, const int32_t grid[3], const int32_t block[3], void* shared) {
  (void)shared;
  for (int32_t i = 0; i < grid[0] * block[0]; ++i) {
    (*(float**)args[1])[i] = (*(float**)args[0])[i] * *(float*)args[2] + (float)*(int64_t*)args[3];
  }
}

/* What the kernel was given, one number after the other. */
static void tell(void** args, const int32_t grid[3], const int32_t block[3], void* shared) {
  double* out = *(double**)args[0];
  out[0] = *(int32_t*)args[1];
  out[1] = *(int8_t*)args[2];
  out[2] = *(bool*)args[3];
  out[3] = *(double*)args[4];
  for (int i = 0; i < 3; ++i) out[4 + i] = grid[i], out[7 + i] = block[i];
  out[10] = ((char*)shared)[99];
}

static const GuardedKernel image[] = {{"scale", scale}, {"tell", tell}, {NULL, NULL}};
static const char* const scale_axes[] = {"blockIdx.x", "threadIdx.x"};
static const char* const tell_axes[] = {"threadIdx.z", "blockIdx.y", "threadIdx.x"};
static const DLDataType scale_types[] = {pointer, pointer, float32, int64};
static const DLDataType tell_types[] = {pointer, int32, int8, boolean, float64};
static const TilewrightKernel kernels[] = {
    {.name = "scale", .arg_types = scale_types, .num_args = 4, .num_axes = 2, .axes = scale_axes},
    {.name = "tell", .arg_types = tell_types, .num_args = 5, .num_axes = 3, .axes = tell_axes, .has_shared_bytes = 1}};

static TVMFFIAny number(int64_t value) { return (TVMFFIAny){.type_index = TILEWRIGHT_INT, .v_int64 = value}; }
static TVMFFIAny real(double value) { return (TVMFFIAny){.type_index = TILEWRIGHT_FLOAT, .v_float64 = value}; }
static TVMFFIAny address(void* value) { return (TVMFFIAny){.type_index = TILEWRIGHT_POINTER, .v_ptr = value}; }
static TVMFFIAny tensor(TilewrightObject* value) { return (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = value}; }

static TilewrightObject* create(DLDevice device, int64_t count, DLDataType type) {
  TilewrightObject* made;
  CHECK(tilewright_tensor_create(&count, 1, type, device, &made) == 0);
  return made;
}

static void fill(TilewrightObject* array, float* values, int64_t count, bool back) {
  DLTensor host = {values, cpu, 1, float32, &count, NULL, 0};
  DLTensor* own = tilewright_tensor_dltensor(array);
  CHECK(tilewright_tensor_copy(back ? own : &host, back ? &host : own) == 0);
}

static TilewrightDeviceModule* module;

static void* launch_often(void* given) {
  int32_t device_id = (int32_t)((intptr_t)given % 2);
  DLDevice device = {kDLExtDev, device_id};
  TilewrightObject* function;
  CHECK(tilewright_device_module_function(module, "scale", &function) == 0);
  CHECK(tilewright_set_device(device) == 0 && tilewright_current_device(kDLExtDev) == device_id);
  for (int turn = 0; turn < 50; ++turn) {
    float values[8] = {0, 1, 2, 3, 4, 5, 6, (float)turn};
    TilewrightObject *from = create(device, 8, float32), *to = create(device, 8, float32);
    fill(from, values, 8, false);
    TVMFFIAny args[] = {tensor(from), tensor(to), real(2), number((intptr_t)given), number(2), number(4)}, result = {0};
    CHECK(tilewright_function_call(function, args, 6, &result) == 0);
    fill(to, values, 8, true);
    CHECK(values[3] == 6 + (float)(intptr_t)given && values[7] == 2 * (float)turn + (float)(intptr_t)given);
    tilewright_object_release(from);
    tilewright_object_release(to);
  }
  tilewright_object_release(function);
  return NULL;
}

/* Six threads launch on two devices: the image is loaded once on each. */
static void threads(void) {
  CHECK(tilewright_device_module_create(kDLExtDev, image, 0, kernels, 2, &module) == 0);
  CHECK(guarded_count(0, MODULES) == 0);
  pthread_t running[6];
  for (intptr_t i = 0; i < 6; ++i) CHECK(pthread_create(&running[i], NULL, launch_often, (void*)i) == 0);
  for (int i = 0; i < 6; ++i) CHECK(pthread_join(running[i], NULL) == 0);
  CHECK(guarded_count(0, MODULES) == 1 && guarded_count(1, MODULES) == 1);
  CHECK(tilewright_current_device(kDLExtDev) == 0); /* each thread has its own */
  tilewright_device_module_release(module);
  CHECK(guarded_count(0, MODULES) == 0 && guarded_count(1, MODULES) == 0);
}

static void arguments(void) {
  const DLDevice device = {kDLExtDev, 0}, second = {kDLExtDev, 1};
  CHECK(tilewright_device_module_create(kDLExtDev, image, 0, kernels, 2, &module) == 0);
  TilewrightObject *launch_tell, *launch_scale, *missing;
  CHECK(tilewright_device_module_function(module, "tell", &launch_tell) == 0);
  CHECK(tilewright_device_module_function(module, "scale", &launch_scale) == 0);
  fails(tilewright_device_module_function(module, "none", &missing), "ValueError", "the module has no kernel none");
  tilewright_device_module_release(module); /* the functions keep it */

  TilewrightObject *out = create(device, 11, float64), *elsewhere = create(second, 8, float32), *here = create(cpu, 8, float32);
  double told[11] = {0};
  int64_t eleven = 11;
  DLTensor host = {told, cpu, 1, float64, &eleven, NULL, 0};
  TVMFFIAny truth = {.type_index = TILEWRIGHT_BOOL, .v_int64 = 1}, result = {0};
  TVMFFIAny args[] = {address(tilewright_tensor_dltensor(out)->data), number(-70000), number(-3), truth, number(5), number(2),
                      number(3), number(4), number(100)};
  CHECK(tilewright_function_call(launch_tell, args, 9, &result) == 0);
  CHECK(tilewright_tensor_copy(tilewright_tensor_dltensor(out), &host) == 0);
  const double expected[11] = {-70000, -3, 1, 5, 1, 3, 1, 4, 1, 2, 0};
  for (int i = 0; i < 11; ++i) CHECK(told[i] == expected[i]);

  int64_t launches = guarded_count(0, LAUNCHES);
  args[6] = number(0); /* no thread: nothing to do */
  CHECK(tilewright_function_call(launch_tell, args, 9, &result) == 0 && guarded_count(0, LAUNCHES) == launches);
  args[6] = number(-1);
  fails(tilewright_function_call(launch_tell, args, 9, &result), "ValueError", "tell cannot be launched with -1 for blockIdx.y");
  args[6] = real(1);
  fails(tilewright_function_call(launch_tell, args, 9, &result), "TypeError", "argument 6 of tell must be an integer, not a float");
  args[6] = number(1), args[8] = number(-1);
  fails(tilewright_function_call(launch_tell, args, 9, &result), "ValueError", "tell cannot have -1 bytes of shared memory");
  args[1] = real(1.5);
  fails(tilewright_function_call(launch_tell, args, 9, &result), "TypeError", "argument 1 of tell must be an integer, not a float");
  args[0] = number(7);
  fails(tilewright_function_call(launch_tell, args, 9, &result), "TypeError",
        "argument 0 of tell must be a tensor or a pointer, not an integer");
  fails(tilewright_function_call(launch_tell, args, 8, &result), "TypeError",
        "tell takes 5 arguments, then 3 extents of thread axes and the bytes of its shared memory; 8 were given");
  TVMFFIAny scaled[] = {tensor(elsewhere), tensor(here), real(2), number(0), number(2), number(4)};
  fails(tilewright_function_call(launch_scale, scaled, 6, &result), "ValueError",
        "argument 0 of scale must be on guarded(0), not on guarded(1)");
  CHECK(tilewright_set_device(second) == 0);
  fails(tilewright_function_call(launch_scale, scaled, 6, &result), "ValueError",
        "argument 1 of scale must be on guarded(1), not on cpu(0)");
  scaled[1] = scaled[0], scaled[2] = address(NULL);
  fails(tilewright_function_call(launch_scale, scaled, 6, &result), "TypeError", "argument 2 of scale must be a number, not a pointer");
  CHECK(tilewright_set_device((DLDevice){kDLExtDev, 7}) == 0);
  scaled[0] = scaled[1] = address(NULL), scaled[2] = real(1);
  fails(tilewright_function_call(launch_scale, scaled, 6, &result), "ValueError", "there is no guarded(7): this process has 2 of them");
  CHECK(tilewright_set_device(device) == 0);
  tilewright_object_release(out);
  tilewright_object_release(elsewhere);
  tilewright_object_release(here);
  tilewright_object_release(launch_tell);
  tilewright_object_release(launch_scale);
}

static void descriptions(void) {
  const DLDataType half = {kDLFloat, 16, 1};
  const char* const twice[] = {"threadIdx.x", "threadIdx.x"};
  const char* const virtual[] = {"vthread"};
  TilewrightKernel one = kernels[0], same[2] = {kernels[0], kernels[0]};
  fails(tilewright_device_module_create(kDLExtDev, image, 0, same, 2, &module), "ValueError", "there are two kernels called scale");
  one.arg_types = &half, one.num_args = 1;
  fails(tilewright_device_module_create(kDLExtDev, "text", 4, &one, 1, &module), "ValueError",
        "argument 0 of scale is float16, which kernels cannot be given");
  one.num_args = 0, one.axes = twice;
  fails(tilewright_device_module_create(kDLExtDev, image, 0, &one, 1, &module), "ValueError", "scale has the thread axis threadIdx.x twice");
  one.axes = virtual, one.num_axes = 1;
  fails(tilewright_device_module_create(kDLExtDev, image, 0, &one, 1, &module), "ValueError",
        "scale has a thread axis vthread, which kernels are not launched with");
  one.num_axes = 0, one.num_args = 1000;
  fails(tilewright_device_module_create(kDLExtDev, image, 0, &one, 1, &module), "ValueError", "scale has 1000 arguments; a kernel has up to 256");
  one.num_args = 0, one.name = "";
  fails(tilewright_device_module_create(kDLExtDev, image, 0, &one, 1, &module), "ValueError", "a kernel needs a name");

  /* What is no image, and a kernel that it does not have, show when they are launched, each time. */
  one.name = "absent";
  TVMFFIAny result = {0};
  TilewrightObject* function;
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(tilewright_device_module_create(kDLExtDev, turn ? "text" : (const void*)image, turn ? 4 : 0, &one, 1, &module) == 0);
    CHECK(tilewright_device_module_function(module, "absent", &function) == 0);
    for (int again = 0; again < 2; ++again) {
      fails(tilewright_function_call(function, NULL, 0, &result), "ValueError",
            turn ? "the image is not a shared object of this machine" : "the module has no kernel absent");
    }
    tilewright_object_release(function);
    tilewright_device_module_release(module);
  }
  CHECK(tilewright_device_module_create(kDLMetal, "text", 4, &one, 1, &module) == 0);
  CHECK(tilewright_device_module_function(module, "absent", &function) == 0);
  fails(tilewright_function_call(function, NULL, 0, &result), "RuntimeError",
        "metal(0) cannot be used: this runtime has no driver for devices of the kind metal");
  tilewright_object_release(function);
  tilewright_device_module_release(module);
}

/* The device of a thread, as generated code sets it. */
static void selection(void) {
  void* slot = NULL;
  TVMFFIAny args[2] = {number(kDLExtDev), number(1)}, result = {0};
  CHECK(tilewright_call_packed("__tvm_set_device", &slot, args, 2, &result) == 0);
  CHECK(tilewright_current_device(kDLExtDev) == 1 && tilewright_current_device(kDLCUDA) == 0);
  args[1] = number(0);
  CHECK(tilewright_call_packed("__tvm_set_device", &slot, args, 2, &result) == 0 && tilewright_current_device(kDLExtDev) == 0);
  args[0] = real(1);
  fails(tilewright_call_packed("__tvm_set_device", &slot, args, 2, &result), "TypeError",
        "__tvm_set_device takes the number of a kind of device and that of a device");
  fails(tilewright_set_device((DLDevice){1000, 0}), "RuntimeError",
        "of type 1000(0) cannot be used: this runtime has no driver for devices of the kind of type 1000");
  CHECK(tilewright_current_device(1000) == 0);
}

int main(void) {
  selection();
  threads();
  arguments();
  descriptions();
  for (int32_t device = 0; device < NUM_DEVICES; ++device) {
    for (int32_t what = ALLOCATIONS; what <= MODULES; ++what) CHECK(guarded_count(device, what) == 0);
  }
  tilewright_clear_error();
  return 0;
}
