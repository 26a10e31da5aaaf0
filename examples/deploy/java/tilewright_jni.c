/* The native methods of tilewright.Module and tilewright.GraphExecutor, over the C runtime. Strings come as UTF-8 with a
 * zero byte at the end; pointers are longs. Errors become TilewrightException. */
#include <jni.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tilewright.h"

static void* pointer(jlong value) { return (void*)(intptr_t)value; }

static jbyteArray bytes_of(JNIEnv* env, const char* text) {
  jsize size = text != NULL ? (jsize)strlen(text) : 0;
  jbyteArray array = (*env)->NewByteArray(env, size);
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, size, (const jbyte*)text);
  return array;
}

static void throw_error(JNIEnv* env, const char* kind, const char* message) {
  jclass type = (*env)->FindClass(env, "tilewright/TilewrightException");
  jmethodID make = type != NULL ? (*env)->GetMethodID(env, type, "<init>", "([B[B)V") : NULL;
  jbyteArray kind_bytes = make != NULL ? bytes_of(env, kind) : NULL;
  jbyteArray message_bytes = kind_bytes != NULL ? bytes_of(env, message) : NULL;
  if (message_bytes == NULL) return; /* an exception is pending: Java has no memory, or not our class */
  jobject error = (*env)->NewObject(env, type, make, kind_bytes, message_bytes);
  if (error != NULL) (*env)->Throw(env, error);
}

/* Throws the runtime's error unless the status is 0. */
static void check(JNIEnv* env, int32_t status) {
  if (status != 0) throw_error(env, tilewright_error_kind(), tilewright_error_message());
}

static void throw_no_such(JNIEnv* env, const char* what, const char* name) {
  char message[256];
  snprintf(message, sizeof message, "the graph has no %s %.160s", what, name);
  throw_error(env, "ValueError", message);
}

JNIEXPORT jlong JNICALL Java_tilewright_Module_open(JNIEnv* env, jclass type, jbyteArray path) {
  (void)type;
  jbyte* text = (*env)->GetByteArrayElements(env, path, NULL);
  if (text == NULL) return 0;
  void* library = tilewright_library_open((const char*)text);
  (*env)->ReleaseByteArrayElements(env, path, text, JNI_ABORT);
  check(env, library != NULL ? 0 : -1);
  return (jlong)(intptr_t)library;
}

JNIEXPORT jlong JNICALL Java_tilewright_GraphExecutor_create(JNIEnv* env, jclass type, jbyteArray json, jlong library) {
  (void)type;
  jbyte* text = (*env)->GetByteArrayElements(env, json, NULL);
  if (text == NULL) return 0;
  size_t size = (size_t)(*env)->GetArrayLength(env, json) - 1;
  TilewrightGraph* graph = NULL;
  int32_t status = tilewright_graph_create((const char*)text, size, tilewright_library_function, pointer(library), &graph);
  (*env)->ReleaseByteArrayElements(env, json, text, JNI_ABORT);
  check(env, status);
  return (jlong)(intptr_t)graph;
}

JNIEXPORT void JNICALL Java_tilewright_GraphExecutor_release(JNIEnv* env, jclass type, jlong graph) {
  (void)env;
  (void)type;
  tilewright_graph_release(pointer(graph));
}

JNIEXPORT void JNICALL Java_tilewright_GraphExecutor_loadParams(JNIEnv* env, jclass type, jlong graph, jbyteArray bytes) {
  (void)type;
  jbyte* content = (*env)->GetByteArrayElements(env, bytes, NULL);
  if (content == NULL) return;
  size_t size = (size_t)(*env)->GetArrayLength(env, bytes);
  int32_t status = tilewright_graph_load_params(pointer(graph), (const char*)content, size);
  (*env)->ReleaseByteArrayElements(env, bytes, content, JNI_ABORT);
  check(env, status);
}

JNIEXPORT void JNICALL Java_tilewright_GraphExecutor_setInput(JNIEnv* env, jclass type, jlong graph, jbyteArray name,
                                                              jfloatArray values, jlongArray shape) {
  (void)type;
  jbyte* text = (*env)->GetByteArrayElements(env, name, NULL);
  jfloat* elements = text != NULL ? (*env)->GetFloatArrayElements(env, values, NULL) : NULL;
  jlong* extents = elements != NULL ? (*env)->GetLongArrayElements(env, shape, NULL) : NULL;
  if (extents != NULL) {
    DLTensor tensor = {.data = elements,
                       .device = {kDLCPU, 0},
                       .ndim = (*env)->GetArrayLength(env, shape),
                       .dtype = {kDLFloat, 32, 1},
                       .shape = (int64_t*)extents};
    int32_t index = tilewright_graph_input_index(pointer(graph), (const char*)text);
    if (index < 0) {
      throw_no_such(env, "input", (const char*)text);
    } else {
      check(env, tilewright_graph_set_input(pointer(graph), index, &tensor));
    }
    (*env)->ReleaseLongArrayElements(env, shape, extents, JNI_ABORT);
  }
  if (elements != NULL) (*env)->ReleaseFloatArrayElements(env, values, elements, JNI_ABORT);
  if (text != NULL) (*env)->ReleaseByteArrayElements(env, name, text, JNI_ABORT);
}

JNIEXPORT void JNICALL Java_tilewright_GraphExecutor_run(JNIEnv* env, jclass type, jlong graph) {
  (void)type;
  check(env, tilewright_graph_run(pointer(graph)));
}

JNIEXPORT jint JNICALL Java_tilewright_GraphExecutor_numOutputs(JNIEnv* env, jclass type, jlong graph) {
  (void)env;
  (void)type;
  return tilewright_graph_num_outputs(pointer(graph));
}

JNIEXPORT jbyteArray JNICALL Java_tilewright_GraphExecutor_outputName(JNIEnv* env, jclass type, jlong graph, jint index) {
  (void)type;
  return bytes_of(env, tilewright_graph_output_name(pointer(graph), index));
}

JNIEXPORT jint JNICALL Java_tilewright_GraphExecutor_outputIndex(JNIEnv* env, jclass type, jlong graph, jbyteArray name) {
  (void)type;
  jbyte* text = (*env)->GetByteArrayElements(env, name, NULL);
  if (text == NULL) return -1;
  int32_t index = tilewright_graph_output_index(pointer(graph), (const char*)text);
  if (index < 0) throw_no_such(env, "output", (const char*)text);
  (*env)->ReleaseByteArrayElements(env, name, text, JNI_ABORT);
  return index;
}

JNIEXPORT jfloatArray JNICALL Java_tilewright_GraphExecutor_output(JNIEnv* env, jclass type, jlong graph, jint index) {
  (void)type;
  TilewrightObject* output = NULL;
  int32_t status = tilewright_graph_output(pointer(graph), index, &output);
  check(env, status);
  if (status != 0) return NULL;
  const DLTensor* tensor = tilewright_tensor_dltensor(output);
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  jfloatArray values = NULL;
  if (tensor->dtype.code != kDLFloat || tensor->dtype.bits != 32 || tensor->dtype.lanes != 1 || count > INT32_MAX) {
    throw_error(env, "TypeError", "the output does not fit an array of floats");
  } else {
    values = (*env)->NewFloatArray(env, (jsize)count);
  }
  const char* data = (const char*)tensor->data + tensor->byte_offset;
  if (values != NULL) (*env)->SetFloatArrayRegion(env, values, 0, (jsize)count, (const jfloat*)(const void*)data);
  tilewright_object_release(output);
  return values;
}

JNIEXPORT jlongArray JNICALL Java_tilewright_GraphExecutor_outputShape(JNIEnv* env, jclass type, jlong graph, jint index) {
  (void)type;
  TilewrightObject* output = NULL;
  int32_t status = tilewright_graph_output(pointer(graph), index, &output);
  check(env, status);
  if (status != 0) return NULL;
  const DLTensor* tensor = tilewright_tensor_dltensor(output);
  jlongArray shape = (*env)->NewLongArray(env, tensor->ndim);
  for (int32_t i = 0; shape != NULL && i < tensor->ndim; ++i) {
    jlong extent = tensor->shape[i];
    (*env)->SetLongArrayRegion(env, shape, i, 1, &extent);
  }
  tilewright_object_release(output);
  return shape;
}
