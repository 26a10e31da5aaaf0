// The C++ session: what it tells, gives and refuses.   ./session MODEL.so
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tilewright.hpp"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(1);
}

void expect_error(const char* kind, const char* part, const std::function<void()>& call) {
  try {
    call();
  } catch (const tilewright::Error& error) {
    expect(error.kind() == kind && std::string(error.what()).find(part) != std::string::npos, error.what());
    return;
  }
  expect(false, part);
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 2, "one argument");
  tilewright::Session session(argv[1]);
  expect(session.inputs().size() == 1 && session.inputs()[0].name == "x.1", "one input");
  expect(session.outputs().size() == 2 && session.outputs()[1].name == "re/lu:0", "two outputs");
  expect(session.inputs()[0].shape.back() == 8, "its shape");

  expect_error("OSError", "cannot load", [] { tilewright::Session("./absent.so"); });
  expect_error("ValueError", "no value yet", [&] { session.run(); });
  expect_error("TypeError", "of another type", [&] { session.set_input("x.1", std::vector<double>(32)); });
  expect_error("ValueError", "bytes", [&] { session.set_input("x.1", std::vector<float>(31)); });
  expect_error("ValueError", "no input", [&] { session.set_input("y", std::vector<float>(32)); });

  session.set_input("x.1", std::vector<float>(32, 1.0f));
  session.run();
  std::vector<float> first = session.output<float>("re/lu:0");
  expect(session.output_shape("re/lu:0") == std::vector<std::int64_t>{4, 8} && first.size() == 32, "an output");
  expect_error("TypeError", "of another type", [&] { session.output<std::int32_t>("re/lu:0"); });
  expect_error("ValueError", "no output", [&] { session.output<float>("nothing"); });

  tilewright::Session other = session.clone();
  tilewright::Session moved = std::move(session);
  other.set_input("x.1", std::vector<float>(32, 2.0f), {4, 8});
  other.run();
  expect(moved.output<float>("re/lu:0") == first, "sessions are apart");
  expect(other.output<float>("re/lu:0") != first, "and give what they are given");
  return 0;
}
