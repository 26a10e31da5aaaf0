// Checks of tilewright.hpp.   ./wrapper model.so
#include <cstdio>
#include <cstdlib>

#include "tilewright.hpp"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

template <typename Body>
std::string kind_of_error(Body body) {
  try {
    body();
  } catch (const tilewright::Error& error) {
    CHECK(error.what()[0] != 0);
    return error.kind();
  }
  return "";
}

// Gives back its first argument; a C string becomes a string object.
static std::int32_t echo(void*, const TVMFFIAny* args, std::int32_t num_args, TVMFFIAny* result) {
  if (num_args == 0) return 0;
  if (args[0].type_index == TILEWRIGHT_C_STRING) {
    const char* data;
    std::size_t size;
    if (tilewright_get_bytes(args, &data, &size) != 0) return -1;
    return tilewright_make_string(data, size, result);
  }
  *result = args[0];
  if (args[0].type_index >= TILEWRIGHT_FIRST_OBJECT) tilewright_object_retain(args[0].v_obj);
  return 0;
}

static int released = 0;
static void count_release(void*) { ++released; }

static void check_functions() {
  TilewrightObject* made = nullptr;
  tilewright::check(tilewright_function_create(echo, nullptr, nullptr, count_release, &made));
  {
    tilewright::Function function{tilewright::Object(made)};
    tilewright::check(tilewright_register_function("test.echo", function.object().get(), 0));
    tilewright::Function same = tilewright::Function::global("test.echo");
    CHECK(same().is_none());
    CHECK(same(42).to_int() == 42);
    CHECK(same(true).to_int() == 1);
    CHECK(same(2.5f).to_float() == 2.5);
    CHECK(same(7).to_float() == 7);
    CHECK(same("a string of some length").to_string() == "a string of some length");
    CHECK(same(std::string("text")).to_string() == "text");
    CHECK(kind_of_error([&] { same("text").to_int(); }) == "TypeError");
    CHECK(kind_of_error([&] { same(1).to_string(); }) == "TypeError");
    tilewright::Value moved = same("kept");
    moved = same("replaced");
    CHECK(moved.to_string() == "replaced");
    tilewright::Function copy = same;
    tilewright::check(tilewright_remove_function("test.echo"));
    CHECK(released == 0);
  }
  CHECK(released == 1);
  CHECK(kind_of_error([] { tilewright::Function::global("test.echo"); }) == "ValueError");
}

static void check_tensors() {
  auto tensor = tilewright::Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  tilewright::Tensor shared = tensor;
  shared.data<float>()[5] = 60;
  CHECK(tensor.values<float>()[5] == 60);
  CHECK(tensor.size() == 6 && tensor.shape() == (std::vector<std::int64_t>{2, 3}));
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.data<float>()) % 64 == 0);
  CHECK(kind_of_error([&] { tensor.data<double>(); }) == "TypeError");
  CHECK(kind_of_error([&] { tensor.data<std::int32_t>(); }) == "TypeError");
  CHECK(kind_of_error([] { tilewright::Tensor::from(std::vector<float>{1}, {2}); }) == "ValueError");
  CHECK(kind_of_error([] { tilewright::Tensor({-1}, tilewright::data_type<float>()); }) == "ValueError");
  CHECK(tilewright::data_type<bool>().bits == 1 && tilewright::data_type<std::uint16_t>().code == kDLUInt);
}

static void check_modules(const std::string& path) {
  tilewright::Module module(path);
  CHECK(kind_of_error([&] { module["absent"]; }) == "AttributeError");
  CHECK(kind_of_error([&] { tilewright::Module(path + ".absent"); }) == "OSError");
  CHECK(kind_of_error([&] { tilewright::GraphExecutor("{", module); }) == "ValueError");
  auto row = tilewright::Tensor::from(std::vector<float>(40, 3), {4, 10});
  tilewright::Tensor out({4, 10}, tilewright::data_type<float>());
  CHECK(module["softmax"](row, out).is_none());
  CHECK(out.values<float>() == std::vector<float>(40, 0.1f));
  CHECK(kind_of_error([&] { module["softmax"](row); }) == "TypeError");
  auto small = tilewright::Tensor::from(std::vector<float>(4, 3), {4, 1});
  CHECK(kind_of_error([&] { module["softmax"](small, out); }) == "ValueError");

  // Without a library: what is linked into the program.
  tilewright::Module linked;
  CHECK(kind_of_error([&] { linked["echo"]; }) == "AttributeError");
  tilewright::check(tilewright_register_system_symbol("__tvm_ffi_echo", reinterpret_cast<void*>(echo)));
  CHECK(linked["echo"](5).to_int() == 5);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  check_functions();
  check_tensors();
  check_modules(argv[1]);
  return 0;
}
