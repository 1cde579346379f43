// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/test.hpp"

#include <filesystem>
#include <fstream>

namespace ferry_test::golden_test {

// PyTorch's own trajectories, written by tests/reference/make_golden.py; see there for the formulas.

inline std::uint64_t scrambled(std::uint64_t key) {
  key += 0x9E3779B97F4A7C15ull;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
  return key ^ (key >> 31);
}

struct golden {
  std::string rule;
  std::map<std::string, double> options;
  std::size_t rows = 0, width = 0, steps = 0;
  std::map<std::size_t, std::vector<double>> weights;  // after some of the steps

  [[nodiscard]] double number(std::size_t step, std::size_t row, std::size_t column) const {
    return (static_cast<double>(scrambled((step * 1009 + row) * 1013 + column) % 4096) - 2048.0) / 2048.0;
  }
  [[nodiscard]] bool is_touched(std::size_t step, std::size_t row) const {
    return scrambled(step * 7919 + row) % 3 != 0;
  }

  static golden read(const std::filesystem::path& path) {
    std::ifstream input(path);
    golden result;
    std::string line;
    std::getline(input, line);
    REQUIRE(line.starts_with("# torch "));
    for (std::string name, value; input >> name >> value;) {
      if (name == "weight") {
        auto& values = result.weights[std::stoul(value)];
        for (std::size_t i = 0; i < result.rows * result.width; ++i) {
          std::string word;
          input >> word;
          values.push_back(
              std::strtod(word.c_str(), nullptr));  // hexadecimal, which operator>> does not read
        }
        REQUIRE(input.good());
      } else if (name == "rule") {
        result.rule = value;
      } else if (name == "rows") {
        result.rows = std::stoul(value);
      } else if (name == "width") {
        result.width = std::stoul(value);
      } else if (name == "steps") {
        result.steps = std::stoul(value);
      } else {
        result.options[name] = std::strtod(value.c_str(), nullptr);
      }
    }
    REQUIRE(result.steps == 50);
    REQUIRE(result.weights.size() == 6);
    REQUIRE(result.weights.contains(50));
    return result;
  }
};

/// Sets options where the file has them, and sees that none is left over.
class option_reader {
 public:
  explicit option_reader(std::map<std::string, double> options) : options_(std::move(options)) {}
  ~option_reader() { CHECK(options_.empty()); }
  void operator()(const std::string& name, double& option) {
    take(name, [&](double value) { option = value; });
  }
  void operator()(const std::string& name, bool& option) {
    take(name, [&](double value) { option = value != 0.0; });
  }
  void operator()(const std::string& name, std::array<double, 2>& option) {
    (*this)(name + "0", option[0]);
    (*this)(name + "1", option[1]);
  }

 private:
  template <class Set>
  void take(const std::string& name, const Set& set) {
    if (const auto option = options_.find(name); option != options_.end()) {
      set(option->second);
      options_.erase(option);
    }
  }
  std::map<std::string, double> options_;
};

/// Whatever options the rule has.
template <class Rule>
Rule configured(const golden& source) {
  Rule rule;
  option_reader option(source.options);
  option("lr", rule.lr);
  option("maximize", rule.maximize);
  if constexpr (requires { rule.weight_decay; }) option("weight_decay", rule.weight_decay);
  if constexpr (requires { rule.momentum; }) option("momentum", rule.momentum);
  if constexpr (requires { rule.dampening; }) option("dampening", rule.dampening);
  if constexpr (requires { rule.nesterov; }) option("nesterov", rule.nesterov);
  if constexpr (requires { rule.lr_decay; }) option("lr_decay", rule.lr_decay);
  if constexpr (requires { rule.initial_accumulator_value; })
    option("initial_accumulator_value", rule.initial_accumulator_value);
  if constexpr (requires { rule.eps; }) option("eps", rule.eps);
  if constexpr (requires { rule.betas; }) option("betas", rule.betas);
  if constexpr (requires { rule.amsgrad; }) option("amsgrad", rule.amsgrad);
  if constexpr (requires { rule.rho; }) option("rho", rule.rho);
  if constexpr (requires { rule.momentum_decay; }) option("momentum_decay", rule.momentum_decay);
  if constexpr (requires { rule.decoupled_weight_decay; })
    option("decoupled_weight_decay", rule.decoupled_weight_decay);
  if constexpr (requires { rule.alpha; }) option("alpha", rule.alpha);
  if constexpr (requires { rule.centered; }) option("centered", rule.centered);
  if constexpr (requires { rule.etas; }) option("etas", rule.etas);
  if constexpr (requires { rule.step_sizes; }) option("step_sizes", rule.step_sizes);
  if constexpr (requires { rule.lambd; }) option("lambd", rule.lambd);
  if constexpr (requires { rule.t0; }) option("t0", rule.t0);
  return rule;
}

template <class T, class Rule>
void follow(const golden& run) {
  const auto rule = configured<Rule>(run);
  const exec_space exec;
  std::vector<T> start;
  for (std::size_t row = 0; row < run.rows; ++row)
    for (std::size_t column = 0; column < run.width; ++column)
      start.push_back(static_cast<T>(run.number(0, row, column)));
  auto table = make<ferry::device_space>("table", run.rows, run.width, start);
  auto state = ferry::optim::make_state(rule, table);
  double worst = 0.0;
  for (std::size_t step = 1; step <= run.steps; ++step) {
    std::vector<std::int64_t> touched;
    std::vector<T> gradients;  // in the order of the indices
    for (std::size_t row = run.rows; row-- > 0;) {
      if (!run.is_touched(step, row)) continue;
      touched.push_back(static_cast<std::int64_t>(row));
      for (std::size_t column = 0; column < run.width; ++column)
        gradients.push_back(static_cast<T>(run.number(step, row, column)));
    }
    ferry::step(exec, rule, table, state, touched,
                make<ferry::device_space>("grads", touched.size(), run.width, gradients),
                ferry::path::direct{}, ferry::duplicates::assume_unique{}, ferry::bounds::unchecked{})
        .wait();
    const auto shown = run.weights.find(step);
    if (shown == run.weights.end()) continue;
    const auto now = take(table);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double expected = shown->second[i];
      worst = std::max(
          worst, std::fabs(static_cast<double>(now[i]) - expected) / std::max(1.0, std::fabs(expected)));
    }
  }
  CHECK(worst < (std::is_same_v<T, double> ? 1e-12 : 1e-6));
}

/// Every file of the rule; there must be one.
template <class T, class Rule>
void follow_all() {
  const auto directory = std::filesystem::path(tests_folder()) / "reference" / "golden";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".txt") continue;
    const auto run = golden::read(entry.path());
    if (run.rule != Rule::name) continue;
    ++files;
    CAPTURE(entry.path().filename().string());
    follow<T, Rule>(run);
  }
  CHECK(files >= 2);
}

TEST_CASE("trajectories of adagrad and adadelta are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::adagrad>();
  follow_all<double, ferry::optim::adadelta>();
}

TEST_CASE("trajectories of adam and adamw are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::adam>();
  follow_all<double, ferry::optim::adamw>();
}

TEST_CASE("trajectories of adamax and nadam are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::adamax>();
  follow_all<double, ferry::optim::nadam>();
}

TEST_CASE("trajectories of rmsprop are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::rmsprop>();
}

TEST_CASE("trajectories of sgd and asgd are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::sgd>();
  follow_all<double, ferry::optim::asgd>();
}

TEST_CASE("trajectories of sparse_adam and rprop are PyTorch's", "[optim][golden]") {
  follow_all<double, ferry::optim::sparse_adam>();
  follow_all<double, ferry::optim::rprop>();
}

// A rule is one formula for both types; bits_test.cpp has the bits of all rules in float.
TEST_CASE("trajectories in float are PyTorch's", "[optim][golden]") {
  follow_all<float, ferry::optim::adam>();
  follow_all<float, ferry::optim::rmsprop>();
  follow_all<float, ferry::optim::sgd>();
}

}  // namespace ferry_test::golden_test
