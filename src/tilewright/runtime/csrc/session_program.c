/* Sessions of programs of the virtual machine. The machine serves any number of threads: clones share it. */
#include <stdlib.h>

#include "session.h"
#include "vm.h"

static int32_t describe(TilewrightTensorInfo* out, const TwVMParam* params, int32_t count, const char* what) {
  for (int32_t i = 0; i < count; ++i) {
    if (!params[i].is_tensor) {
      return tw_fail("ValueError", "the %s %s of the program is not a tensor: call it with tilewright_vm_invoke", what, params[i].name);
    }
    out[i] = (TilewrightTensorInfo){params[i].name, params[i].dtype, params[i].ndim, params[i].shape};
  }
  return 0;
}

static int32_t open_program(TilewrightSession* session, TilewrightSession* shared) {
  if (shared != NULL) {
    tilewright_vm_retain(shared->vm);
    session->vm = shared->vm;
  } else if (tilewright_vm_create_on(session->content, (size_t)session->size, NULL, 0, tilewright_library_function, session->library, 1,
                                     session->devices, session->num_devices, &session->vm) != 0) {
    return -1;
  }
  const TilewrightVM* vm = session->vm;
  int32_t index = tilewright_vm_function_index(vm, "main");
  if (index < 0) return tw_fail("ValueError", "the program in the library has no function main");
  const TwVMFunction* function = &vm->functions[index];
  if (vm->num_outputs == 0) return tw_fail("ValueError", "the results of the program are not tensors: call it with tilewright_vm_invoke");
  if (tw_session_allocate(session, function->num_params, vm->num_outputs) != 0) return -1;
  if (describe(session->inputs, function->params, function->num_params, "input") != 0) return -1;
  return describe(session->outputs, vm->outputs, vm->num_outputs, "output");
}

/* Puts the tensors of a result, tuples flattened, into their places. */
static int32_t spread(TilewrightSession* session, const TVMFFIAny* value, int32_t* count) {
  if (value->type_index == TILEWRIGHT_DATA) {
    for (int64_t i = 0; i < tilewright_data_size(value->v_obj); ++i) {
      TVMFFIAny field;
      if (tilewright_data_field(value->v_obj, i, &field) != 0) return -1;
      int32_t status = spread(session, &field, count);
      tilewright_any_release(&field);
      if (status != 0) return -1;
    }
    return 0;
  }
  if (value->type_index != TILEWRIGHT_TENSOR || *count == session->num_outputs) {
    return tw_fail("ValueError", "the program gave something else than the %d tensors that it says", (int)session->num_outputs);
  }
  tilewright_object_retain(value->v_obj);
  tilewright_object_release(session->made[*count]);
  session->made[(*count)++] = value->v_obj;
  return 0;
}

static int32_t run(TilewrightSession* session) {
  TVMFFIAny* args = calloc((size_t)session->num_inputs + 1, sizeof *args);
  if (args == NULL) return tw_fail("MemoryError", "no memory for the arguments of a program");
  for (int32_t i = 0; i < session->num_inputs; ++i) {
    args[i] = (TVMFFIAny){.type_index = TILEWRIGHT_TENSOR, .v_obj = session->values[i]};
  }
  TVMFFIAny result = {0};
  int32_t count = 0, main = tilewright_vm_function_index(session->vm, "main");
  int32_t status = tilewright_vm_invoke(session->vm, main, args, session->num_inputs, &result);
  free(args);
  if (status == 0) status = spread(session, &result, &count);
  tilewright_any_release(&result);
  if (status == 0 && count != session->num_outputs) {
    return tw_fail("ValueError", "the program gave %d tensors, and says that it gives %d", (int)count, (int)session->num_outputs);
  }
  return status;
}

static void close_program(TilewrightSession* session) { tilewright_vm_release(session->vm); }

const TwSessionKind tw_program_session = {"VMExecutable", open_program, tw_session_keep, run, tw_session_made, close_program};
