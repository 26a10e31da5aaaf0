// Runs the model of make_open_model.py, whose sizes are open, from C++.   ./open_sizes FOLDER
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tilewright.hpp"

namespace {

constexpr double kTolerance = 1e-5;

template <typename T>
std::vector<T> read(const std::string& path, std::size_t count) {
  std::vector<T> values(count);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) throw std::runtime_error("cannot read " + path);
  return values;
}

// "tokens [?, ?]": an extent of -1 is open.
void describe(const char* what, const tilewright::TensorInfo& info) {
  std::string shape;
  for (std::int64_t extent : info.shape) {
    shape += (shape.empty() ? "" : ", ") + (extent < 0 ? std::string("?") : std::to_string(extent));
  }
  std::printf("%s %s [%s]\n", what, info.name.c_str(), shape.c_str());
}

// Runs the model on one batch and prints the class of each sentence; the largest difference from what is expected.
double run(tilewright::Session& session, const std::string& folder, std::int64_t sentences, std::int64_t length) {
  const std::string size = std::to_string(sentences) + "x" + std::to_string(length) + ".bin";
  const auto count = static_cast<std::size_t>(sentences * length);
  session.set_input("tokens", read<std::int64_t>(folder + "/tokens_" + size, count), {sentences, length});
  session.run();
  const std::vector<float> values = session.output<float>("probabilities");
  const std::vector<std::int64_t> shape = session.output_shape("probabilities");
  if (shape[0] != sentences) throw std::runtime_error("the output has another number of sentences");
  const std::vector<float> expected = read<float>(folder + "/expected_" + size, values.size());

  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double difference = std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i]));
    if (!std::isnan(most) && !(difference <= most)) most = difference;  // NaN is the largest
  }
  std::printf("%d x %d:", static_cast<int>(sentences), static_cast<int>(length));
  for (auto row = values.begin(); row != values.end(); row += shape[1]) {
    std::printf(" %d", static_cast<int>(std::max_element(row, row + shape[1]) - row));
  }
  std::printf("\n");
  return most;
}

bool run_all(const std::string& folder) {
  tilewright::Session session(folder + "/open.so");
  for (const tilewright::TensorInfo& info : session.inputs()) describe("input", info);
  for (const tilewright::TensorInfo& info : session.outputs()) describe("output", info);
  double most = 0;
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{2, 5}, {1, 9}, {3, 1}};
  for (const auto& [sentences, length] : sizes) {
    double difference = run(session, folder, sentences, length);
    if (!std::isnan(most) && !(difference <= most)) most = difference;
  }
  std::printf("largest difference: %.2e\n", most);
  return most <= kTolerance;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  try {
    return run_all(argv[1]) ? 0 : 1;
  } catch (const tilewright::Error& error) {
    std::cerr << error.kind() << ": " << error.what() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 2;
}
