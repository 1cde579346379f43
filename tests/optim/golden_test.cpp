#include "support/arrays.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

/// PyTorch's own trajectories, written by tests/reference/make_golden.py.
namespace ferry_test {

namespace {

struct golden {
  std::string rule;
  std::map<std::string, double> options;
  std::size_t rows = 0, width = 0;
  std::vector<double> start;
  std::vector<std::vector<double>> gradients, weights;
};

std::vector<double> read_rows(std::istream& in, std::size_t count) {
  std::vector<double> values(count);
  for (auto& value : values) {
    std::string word;
    in >> word;
    value = std::strtod(word.c_str(), nullptr);  // hexadecimal, which operator>> does not read
  }
  return values;
}

golden read(const std::filesystem::path& path) {
  std::ifstream in(path);
  golden made;
  std::string line;
  std::getline(in, line);
  REQUIRE(line.starts_with("# torch "));
  for (std::string name, value; in >> name;) {
    const std::size_t size = made.rows * made.width;
    if (name == "start") {
      made.start = read_rows(in, size);
    } else if (name == "gradient") {
      in >> value;
      made.gradients.push_back(read_rows(in, size));
    } else if (name == "weight") {
      in >> value;
      made.weights.push_back(read_rows(in, size));
    } else if (in >> value; name == "rule") {
      made.rule = value;
    } else if (name == "rows") {
      made.rows = std::stoul(value);
    } else if (name == "width") {
      made.width = std::stoul(value);
    } else if (name != "steps") {
      made.options[name] = std::strtod(value.c_str(), nullptr);
    }
  }
  REQUIRE(made.start.size() == 15);
  REQUIRE(made.gradients.size() == 50);
  REQUIRE(made.weights.size() == 50);
  return made;
}

/// Sets an option where the file has it, and sees that none is left over.
class option_reader {
 public:
  explicit option_reader(std::map<std::string, double> options) : options_(std::move(options)) {}
  ~option_reader() { CHECK(options_.empty()); }
  void operator()(const char* name, double& option) {
    take(name, [&](double value) { option = value; });
  }
  void operator()(const char* name, bool& option) {
    take(name, [&](double value) { option = value != 0.0; });
  }

 private:
  template <class Set>
  void take(const char* name, const Set& set) {
    if (const auto found = options_.find(name); found != options_.end()) {
      set(found->second);
      options_.erase(found);
    }
  }
  std::map<std::string, double> options_;
};

void configure(ferry::optim::sgd& rule, option_reader& option) {
  option("lr", rule.lr);
  option("momentum", rule.momentum);
  option("dampening", rule.dampening);
  option("weight_decay", rule.weight_decay);
  option("nesterov", rule.nesterov);
  option("maximize", rule.maximize);
}
void configure(ferry::optim::adagrad& rule, option_reader& option) {
  option("lr", rule.lr);
  option("lr_decay", rule.lr_decay);
  option("weight_decay", rule.weight_decay);
  option("initial_accumulator_value", rule.initial_accumulator_value);
  option("eps", rule.eps);
  option("maximize", rule.maximize);
}
void configure(ferry::optim::adam& rule, option_reader& option) {
  option("lr", rule.lr);
  option("betas0", rule.betas[0]);
  option("betas1", rule.betas[1]);
  option("eps", rule.eps);
  option("weight_decay", rule.weight_decay);
  option("maximize", rule.maximize);
}

template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T, class Rule>
void follow(const golden& from, double tolerance) {
  Rule rule;
  {
    option_reader option(from.options);
    configure(rule, option);
  }
  const exec_space exec;
  auto table = make<ferry::device_space>("table", from.rows, from.width, narrowed<T>(from.start));
  auto state = ferry::optim::make_state(rule, table);
  std::vector<std::int64_t> all(from.rows);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(all.size() - 1 - i);
  double worst = 0.0;
  for (std::size_t s = 0; s < from.gradients.size(); ++s) {
    std::vector<T> gradients;  // in the order of the indices
    for (const auto row : all)
      for (std::size_t j = 0; j < from.width; ++j)
        gradients.push_back(
            static_cast<T>(from.gradients[s][static_cast<std::size_t>(row) * from.width + j]));
    ferry::step(exec, rule, table, state, all,
                make<ferry::device_space>("grads", from.rows, from.width, gradients))
        .wait();
    const auto now = take(table);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double expected = from.weights[s][i];
      worst = std::max(
          worst, std::fabs(static_cast<double>(now[i]) - expected) / std::max(1.0, std::fabs(expected)));
    }
  }
  CHECK(worst < tolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("trajectories are PyTorch's", "[optim][golden]", float, double) {
  const auto directory = std::filesystem::path(__FILE__).parent_path().parent_path() / "reference" / "golden";
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(directory))
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      if (entry.path().extension() == ".txt") files.push_back(entry.path());
  if (files.empty()) SKIP("no trajectories in tests/reference/golden; make_golden.py writes them");
  const double tolerance = std::is_same_v<TestType, double> ? 1e-12 : 1e-6;
  for (const auto& file : files) {
    CAPTURE(file.string());
    const auto from = read(file);
    if (from.rule == "sgd")
      follow<TestType, ferry::optim::sgd>(from, tolerance);
    else if (from.rule == "adagrad")
      follow<TestType, ferry::optim::adagrad>(from, tolerance);
    else if (from.rule == "adam")
      follow<TestType, ferry::optim::adam>(from, tolerance);
    else
      FAIL("unknown rule " << from.rule);
  }
}

}  // namespace ferry_test
