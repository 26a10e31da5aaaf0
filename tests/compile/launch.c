/* A program without Python that runs an exported library on the guarded device: argv[1] is the library. */
#include "../runtime/device/guarded_device.c"

static int give_up(void) {
  fprintf(stderr, "%s\n", tilewright_error_message());
  return 2;
}

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  void* library = tilewright_library_open(argv[1]);
  if (library == NULL) return give_up();
  TilewrightObject* function = tilewright_library_function(library, "scale");
  DLDevice cpu = {kDLCPU, 0}, device = {kDLExtDev, 1};
  float values[5] = {1, 2, 3, 4, 5};
  int64_t five = 5;
  DLTensor host = {values, cpu, 1, {kDLFloat, 32, 1}, &five, NULL, 0};
  TilewrightObject *x, *y;
  if (tilewright_tensor_create(&five, 1, host.dtype, device, &x) != 0 || tilewright_tensor_create(&five, 1, host.dtype, device, &y) != 0 ||
      tilewright_tensor_copy(&host, tilewright_tensor_dltensor(x)) != 0) {
    return give_up();
  }
  TVMFFIAny args[2] = {{.type_index = TILEWRIGHT_TENSOR, .v_obj = x}, {.type_index = TILEWRIGHT_TENSOR, .v_obj = y}}, result = {0};
  if (tilewright_function_call(function, args, 2, &result) != 0 || tilewright_tensor_copy(tilewright_tensor_dltensor(y), &host) != 0) {
    return give_up();
  }
  for (int i = 0; i < 5; ++i) printf("%g ", values[i]);
  tilewright_object_release(x);
  tilewright_object_release(y);
  tilewright_object_release(function);
  printf("%d", (int)(guarded_count(1, ALLOCATIONS) + guarded_count(1, LAUNCHES)));
  return 0;
}
