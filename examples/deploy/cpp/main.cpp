// Runs the model of make_model.py from C++.   ./main FOLDER
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tilewright.hpp"

namespace {

constexpr double kTolerance = 1e-5;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> read_floats(const std::string& path) {
  std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

bool run(const std::string& folder) {
  tilewright::Module module(folder + "/model.so");
  tilewright::GraphExecutor graph(read_file(folder + "/graph.json"), module);
  graph.load_params(read_file(folder + "/params.bin"));
  graph.set_input("x", tilewright::Tensor::from(read_floats(folder + "/input.bin"), graph.input("x").shape()));
  graph.run();
  tilewright::Tensor output = graph.output();

  // One function of the model, called by itself: the probabilities of equal scores are equal.
  tilewright::Tensor scores = tilewright::Tensor::from(std::vector<float>(output.size(), 1.0f), output.shape());
  tilewright::Tensor equal(output.shape(), tilewright::data_type<float>());
  module["softmax"](scores, equal);
  const std::int64_t columns = output.shape()[1];
  bool is_close = std::abs(equal.data<float>()[0] - 1.0 / static_cast<double>(columns)) <= kTolerance;

  std::vector<float> values = output.values<float>();
  std::vector<float> expected = read_floats(folder + "/expected.bin");
  if (expected.size() != values.size()) throw std::runtime_error("expected.bin is of another length than the output");
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double difference = std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i]));
    is_close = is_close && difference <= kTolerance;  // not true of NaN either
    most = std::max(most, difference);
  }
  std::printf("prediction:");
  for (auto row = values.begin(); row != values.end(); row += columns) {
    std::printf(" %d", static_cast<int>(std::max_element(row, row + columns) - row));
  }
  std::printf("\nlargest difference: %.2e\n", most);
  return is_close;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  try {
    return run(argv[1]) ? 0 : 1;
  } catch (const tilewright::Error& error) {
    std::cerr << error.kind() << ": " << error.what() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 2;
}
