// Tilewright's C runtime for C++17: values that own what they hold, and errors as exceptions. Header only.
#ifndef TILEWRIGHT_HPP_
#define TILEWRIGHT_HPP_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright.h"

namespace tilewright {

// An error of the runtime or of a compiled function; `kind` is its class, such as "ValueError".
class Error : public std::runtime_error {
 public:
  Error(std::string kind, const std::string& message) : std::runtime_error(message), kind_(std::move(kind)) {}
  const std::string& kind() const noexcept { return kind_; }

 private:
  std::string kind_;
};

[[noreturn]] inline void throw_error() {
  const char* kind = tilewright_error_kind();
  const char* message = tilewright_error_message();
  throw Error(kind != nullptr ? kind : "RuntimeError", message != nullptr ? message : "a call failed without saying why");
}

// Throws the calling thread's error unless the status is 0.
inline void check(std::int32_t status) {
  if (status != 0) throw_error();
}

// A counted reference to an object of the runtime.
class Object {
 public:
  Object() noexcept = default;
  // Takes over a reference that the caller holds.
  explicit Object(TilewrightObject* owned) noexcept : handle_(owned) {}
  Object(const Object& other) noexcept : handle_(other.handle_) {
    if (handle_ != nullptr) tilewright_object_retain(handle_);
  }
  Object(Object&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Object() { tilewright_object_release(handle_); }

  TilewrightObject* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  TilewrightObject* handle_ = nullptr;
};

// The runtime's data type of a C++ type.
template <typename T>
constexpr DLDataType data_type() {
  static_assert(std::is_arithmetic_v<T>, "a tensor's elements are numbers");
  constexpr auto code = std::is_floating_point_v<T> ? kDLFloat : std::is_signed_v<T> ? kDLInt : kDLUInt;
  constexpr std::size_t bits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
}

// A tensor in host memory. Copies of the value share the elements.
class Tensor {
 public:
  // New memory, not initialised.
  Tensor(const std::vector<std::int64_t>& shape, DLDataType dtype) {
    TilewrightObject* made = nullptr;
    check(tilewright_tensor_create(shape.data(), static_cast<std::int32_t>(shape.size()), dtype, {kDLCPU, 0}, &made));
    object_ = Object(made);
  }
  explicit Tensor(Object object) : object_(std::move(object)) {}

  // A tensor of these elements, in row-major order.
  template <typename T>
  static Tensor from(const std::vector<T>& values, const std::vector<std::int64_t>& shape) {
    Tensor tensor(shape, data_type<T>());
    if (tensor.size() != values.size()) throw Error("ValueError", "the values do not fill the shape");
    std::copy(values.begin(), values.end(), tensor.template data<T>());
    return tensor;
  }

  DLTensor* get() const noexcept { return tilewright_tensor_dltensor(object_.get()); }
  const Object& object() const noexcept { return object_; }
  std::vector<std::int64_t> shape() const { return {get()->shape, get()->shape + get()->ndim}; }
  std::size_t size() const {
    std::size_t count = 1;
    for (std::int32_t i = 0; i < get()->ndim; ++i) count *= static_cast<std::size_t>(get()->shape[i]);
    return count;
  }

  // The elements of a compact tensor; an error if they are not of this type.
  template <typename T>
  T* data() const {
    const DLTensor* tensor = get();
    constexpr DLDataType wanted = data_type<T>();
    if (tensor->dtype.code != wanted.code || tensor->dtype.bits != wanted.bits || tensor->dtype.lanes != 1) {
      throw Error("TypeError", "the tensor's elements are of another type");
    }
    std::int64_t compact = 1;
    for (std::int32_t i = tensor->ndim - 1; tensor->strides != nullptr && i >= 0; --i) {
      if (tensor->shape[i] != 1 && tensor->strides[i] != compact) throw Error("ValueError", "the tensor is not compact");
      compact *= tensor->shape[i];
    }
    return reinterpret_cast<T*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
  }

  template <typename T>
  std::vector<T> values() const {
    const T* first = data<T>();
    return std::vector<T>(first, first + size());
  }

 private:
  Object object_;
};

// What a function returns: nothing, a number, a string or an object.
class Value {
 public:
  Value() noexcept = default;
  Value(Value&& other) noexcept : any_(std::exchange(other.any_, TVMFFIAny{})) {}
  Value& operator=(Value&& other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value() { tilewright_any_release(&any_); }

  TVMFFIAny* get() noexcept { return &any_; }
  bool is_none() const noexcept { return any_.type_index == TILEWRIGHT_NONE; }
  std::int64_t to_int() const {
    if (any_.type_index != TILEWRIGHT_INT && any_.type_index != TILEWRIGHT_BOOL) throw Error("TypeError", "the value is not an integer");
    return any_.v_int64;
  }
  double to_float() const {
    return any_.type_index == TILEWRIGHT_FLOAT ? any_.v_float64 : static_cast<double>(to_int());
  }
  std::string to_string() const {
    const char* data = nullptr;
    std::size_t size = 0;
    check(tilewright_get_bytes(&any_, &data, &size));
    return {data, size};
  }

 private:
  TVMFFIAny any_{};
};

// A compiled or registered function, called with tensors, numbers and strings.
class Function {
 public:
  explicit Function(Object object) : object_(std::move(object)) {}

  // The function that the program registered under a name.
  static Function global(const std::string& name) {
    Object found(tilewright_get_function(name.c_str()));
    if (!found) throw Error("ValueError", "there is no function " + name);
    return Function(std::move(found));
  }

  template <typename... Arguments>
  Value operator()(const Arguments&... arguments) const {
    const TVMFFIAny packed[sizeof...(Arguments) + 1] = {pack(arguments)..., TVMFFIAny{}};
    Value result;
    check(tilewright_function_call(object_.get(), packed, static_cast<std::int32_t>(sizeof...(Arguments)), result.get()));
    return result;
  }

  const Object& object() const noexcept { return object_; }

 private:
  static TVMFFIAny pack(const Tensor& tensor) {
    TVMFFIAny value{};
    value.type_index = TILEWRIGHT_TENSOR;
    value.v_obj = tensor.object().get();
    return value;
  }
  static TVMFFIAny pack(const std::string& text) { return pack(text.c_str()); }
  static TVMFFIAny pack(const char* text) {
    TVMFFIAny value{};
    value.type_index = TILEWRIGHT_C_STRING;
    value.v_c_str = text;
    return value;
  }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  static TVMFFIAny pack(T number) {
    TVMFFIAny value{};
    if constexpr (std::is_floating_point_v<T>) {
      value.type_index = TILEWRIGHT_FLOAT;
      value.v_float64 = static_cast<double>(number);
    } else {
      value.type_index = std::is_same_v<T, bool> ? TILEWRIGHT_BOOL : TILEWRIGHT_INT;
      value.v_int64 = static_cast<std::int64_t>(number);
    }
    return value;
  }

  Object object_;
};

// A library of compiled functions, or, without a path, the functions that are linked into the program itself.
// A library stays loaded until the program ends.
class Module {
 public:
  Module() noexcept = default;
  explicit Module(const std::string& path) : library_(tilewright_library_open(path.c_str())) {
    if (library_ == nullptr) throw_error();
  }

  Function operator[](const std::string& name) const {
    Object found(tilewright_library_function(library_, name.c_str()));
    if (!found) throw Error("AttributeError", "the module has no function " + name);
    return Function(std::move(found));
  }

  void* get() const noexcept { return library_; }

 private:
  void* library_ = nullptr;
};

// A graph of a module's functions, with its memory and parameters.
class GraphExecutor {
 public:
  GraphExecutor(std::string_view json, const Module& module) {
    TilewrightGraph* made = nullptr;
    check(tilewright_graph_create(json.data(), json.size(), tilewright_library_function, module.get(), &made));
    graph_.reset(made);
  }

  // Parameters as `save_param_dict` wrote them.
  void load_params(std::string_view bytes) {
    check(tilewright_graph_load_params(graph_.get(), bytes.data(), bytes.size()));
  }

  // Copies a tensor into an input.
  void set_input(const std::string& name, const Tensor& value) {
    check(tilewright_graph_set_input(graph_.get(), index_of(name), value.get()));
  }

  // Tensors that share the graph's memory and keep it alive. A run writes over outputs.
  Tensor input(const std::string& name) const { return tensor(tilewright_graph_input, index_of(name)); }
  Tensor output(std::int32_t index = 0) const { return tensor(tilewright_graph_output, index); }
  Tensor output(const std::string& name) const {
    std::int32_t index = tilewright_graph_output_index(graph_.get(), name.c_str());
    if (index < 0) throw Error("ValueError", "the graph has no output " + name);
    return output(index);
  }

  std::int32_t num_inputs() const { return tilewright_graph_num_inputs(graph_.get()); }
  std::int32_t num_outputs() const { return tilewright_graph_num_outputs(graph_.get()); }

  void run() { check(tilewright_graph_run(graph_.get())); }

 private:
  struct Release {
    void operator()(TilewrightGraph* graph) const noexcept { tilewright_graph_release(graph); }
  };
  using Getter = std::int32_t (*)(TilewrightGraph*, std::int32_t, TilewrightObject**);

  std::int32_t index_of(const std::string& name) const {
    std::int32_t index = tilewright_graph_input_index(graph_.get(), name.c_str());
    if (index < 0) throw Error("ValueError", "the graph has no input " + name);
    return index;
  }

  Tensor tensor(Getter getter, std::int32_t index) const {
    TilewrightObject* made = nullptr;
    check(getter(graph_.get(), index, &made));
    return Tensor(Object(made));
  }

  std::unique_ptr<TilewrightGraph, Release> graph_;
};

// An input or an output of a model: its name, type and shape, in which -1 is an open extent.
struct TensorInfo {
  std::string name;
  DLDataType dtype;
  std::vector<std::int64_t> shape;
};

// A library with its model inside, opened in one call and used by the names of its inputs and outputs. One thread at a time;
// `clone` makes another that shares the parameters.
class Session {
 public:
  explicit Session(const std::string& path) : Session(tilewright_open(path.c_str())) {}
  Session clone() const { return Session(tilewright_session_clone(session_.get())); }

  std::vector<TensorInfo> inputs() const { return infos(tilewright_session_num_inputs, tilewright_session_input_info); }
  std::vector<TensorInfo> outputs() const { return infos(tilewright_session_num_outputs, tilewright_session_output_info); }

  // Copies values, in row-major order, into an input of their type. One open extent follows from their number.
  template <typename T>
  void set_input(const std::string& name, const std::vector<T>& values) {
    for (const TensorInfo& info : inputs()) {
      if (info.name == name) require_type<T>(info.dtype, "input", name);
    }
    check(tilewright_session_set_input(session_.get(), name.c_str(), values.data(), values.size() * sizeof(T)));
  }

  // The same with a shape, for inputs that leave more than one extent open.
  template <typename T>
  void set_input(const std::string& name, const std::vector<T>& values, const std::vector<std::int64_t>& shape) {
    set_input(name, Tensor::from(values, shape));
  }
  void set_input(const std::string& name, const Tensor& value) {
    check(tilewright_session_set_tensor(session_.get(), name.c_str(), value.get()));
  }

  void run() { check(tilewright_session_run(session_.get())); }

  // A copy of an output of the last run, in row-major order, and its shape.
  template <typename T>
  std::vector<T> output(const std::string& name) const {
    const DLTensor& tensor = get_output(name);
    require_type<T>(tensor.dtype, "output", name);
    std::size_t count = 1;
    for (std::int64_t extent : output_shape(name)) count *= static_cast<std::size_t>(extent);
    const T* first = static_cast<const T*>(tensor.data);
    return std::vector<T>(first, first + count);
  }
  std::vector<std::int64_t> output_shape(const std::string& name) const {
    const DLTensor& tensor = get_output(name);
    return {tensor.shape, tensor.shape + tensor.ndim};
  }

 private:
  struct Close {
    void operator()(TilewrightSession* session) const noexcept { tilewright_close(session); }
  };

  explicit Session(TilewrightSession* session) : session_(session) {
    if (session == nullptr) throw_error();
  }

  template <typename Count, typename Get>
  std::vector<TensorInfo> infos(Count count, Get get) const {
    std::vector<TensorInfo> found;
    for (std::int32_t i = 0; i < count(session_.get()); ++i) {
      const TilewrightTensorInfo* info = get(session_.get(), i);
      found.push_back({info->name, info->dtype, {info->shape, info->shape + info->ndim}});
    }
    return found;
  }

  const DLTensor& get_output(const std::string& name) const {
    const DLTensor* tensor = tilewright_session_output(session_.get(), name.c_str());
    if (tensor == nullptr) throw_error();
    return *tensor;
  }

  template <typename T>
  static void require_type(DLDataType dtype, const char* what, const std::string& name) {
    constexpr DLDataType wanted = data_type<T>();
    if (dtype.code != wanted.code || dtype.bits != wanted.bits || dtype.lanes != 1) {
      throw Error("TypeError", std::string("the elements of the ") + what + " " + name + " are of another type");
    }
  }

  std::unique_ptr<TilewrightSession, Close> session_;
};

}  // namespace tilewright

#endif  // TILEWRIGHT_HPP_
