// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

#include <fstream>

/// Results of torch.nn.EmbeddingBag and its autograd, written by tests/reference/make_golden_bags.py; see there
/// for the formulas.
namespace ferry_test::torch_test {

constexpr std::size_t rows = 11, width = 5, bags = 13, steps = 4;

std::uint64_t scrambled(std::uint64_t key) {
  key += 0x9E3779B97F4A7C15ull;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ull;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBull;
  return key ^ (key >> 31);
}

std::vector<double> numbers(std::size_t step, std::size_t count, std::size_t columns,
                            std::int64_t kinds = 4096) {
  std::vector<double> result;
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const auto kind = static_cast<std::int64_t>(scrambled((step * 1009 + r) * 1013 + c) %
                                                  static_cast<std::uint64_t>(kinds));
      result.push_back(static_cast<double>(kind - kinds / 2) * 2.0 / static_cast<double>(kinds));
    }
  return result;
}

struct golden_bags {
  std::string mode;
  std::map<std::string, std::int64_t> options;
  std::map<std::string, std::vector<double>> arrays;

  static golden_bags read(const std::string& path) {
    std::ifstream input(path);
    REQUIRE(input.good());
    golden_bags result;
    std::string line;
    std::getline(input, line);
    REQUIRE(line.starts_with("# torch "));
    for (std::string name, value; input >> name >> value;) {
      if (name == "mode") {
        result.mode = value;
      } else if (name == "weights" || name == "padding" || name == "nan" || name == "adam") {
        result.options[name] = std::stol(value);
      } else {
        auto& values = result.arrays[name];
        for (std::size_t i = std::stoul(value); i > 0; --i) {
          std::string word;
          input >> word;
          values.push_back(
              std::strtod(word.c_str(), nullptr));  // hexadecimal, which operator>> does not read
        }
        REQUIRE(input.good());
      }
    }
    REQUIRE(result.arrays.at("pooled").size() == bags * width);
    REQUIRE(result.arrays.at("trained").size() == rows * width);
    return result;
  }
  [[nodiscard]] bool has(const std::string& option) const { return options.contains(option); }
};

struct golden_batch {
  std::vector<std::int64_t> offsets{0}, ids;

  golden_batch(std::size_t step, const golden_bags& input) {
    for (std::size_t bag = 0; bag < bags; ++bag) {
      const auto length = static_cast<std::int64_t>(scrambled(step * 31337 + bag) % 6);
      offsets.push_back(offsets.back() + (length == 5 ? 0 : bag == 7 ? 40 : length));
    }
    for (std::size_t p = 0; p < static_cast<std::size_t>(offsets.back()); ++p) {
      const auto row = static_cast<std::int64_t>(scrambled(step * 7919 + 1000003 * p) % rows);
      ids.push_back(input.has("padding") && row == input.options.at("padding") ? -1 : row);
    }
  }
};

void check_close(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(expected[i]))
      CHECK(std::isnan(actual[i]));
    else
      CHECK(std::abs(actual[i] - expected[i]) <= 1e-14 * (1.0 + std::abs(expected[i])));
  }
}

/// Pools, steps and trains as torch did.
template <class Pooling, bool Weighted, class Rule>
void follow(const golden_bags& torch, const Rule& rule) {
  const exec_space exec;
  auto start = numbers(0, rows, width, 16);
  if (torch.has("nan"))
    for (std::size_t row = 0; row < rows; row += 4) start[row * width + row % width] = std::nan("");
  auto table = make<ferry::device_space>("table", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  for (std::size_t step = 1; step <= steps; ++step) {
    const golden_batch batch(step, torch);
    const auto grads = make<ferry::device_space>("grads", bags, width, numbers(100 + step, bags, width));
    const auto weights = numbers(50 + step, batch.ids.size(), 1);
    ferry::tensor<double, ferry::device_space> out("pooled", bags, width),
        weight_grads("weights", weights.size());
    constexpr ferry::policies<Pooling, ferry::bounds::skip> policies;
    if constexpr (Weighted)
      ferry::gather_bags(exec, table, batch.ids, batch.offsets, out, weights, policies).wait();
    else
      ferry::gather_bags(exec, table, batch.ids, batch.offsets, out, policies).wait();
    if (step == 1) {
      check_close(take(out), torch.arrays.at("pooled"));
      // A step of plain SGD with rate 1 subtracts the gradient.
      const ferry::optim::sgd unit_rate{.lr = 1.0};
      ferry::tensor<double, ferry::device_space> zero("table", rows, width);
      put(zero, start);
      auto no_state = ferry::optim::make_state(unit_rate, zero);
      if constexpr (Weighted)
        ferry::step_bags(exec, unit_rate, zero, no_state, batch.ids, batch.offsets, grads, weights,
                         weight_grads, policies)
            .wait();
      else
        ferry::step_bags(exec, unit_rate, zero, no_state, batch.ids, batch.offsets, grads, policies).wait();
      auto expected = start;
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= torch.arrays.at("gradient")[i];
      check_close(take(zero), expected);
      if constexpr (Weighted) check_close(take(weight_grads), torch.arrays.at("weight_gradient"));
    }
    if constexpr (Weighted)
      ferry::step_bags(exec, rule, table, state, batch.ids, batch.offsets, grads, weights, policies).wait();
    else
      ferry::step_bags(exec, rule, table, state, batch.ids, batch.offsets, grads, policies).wait();
  }
  check_close(take(table), torch.arrays.at("trained"));
}

TEST_CASE("Bags are pooled, differentiated and trained as by torch.nn.EmbeddingBag", "[golden]") {
  const std::string folder = tests_folder() + "/reference/golden_bags/";
  for (const char* name : {"sum", "mean", "max", "max_nan", "sum_weights", "sum_padding", "mean_padding",
                           "max_padding", "mean_sparse_adam", "sum_weights_sparse_adam"}) {
    CAPTURE(name);
    const auto torch = golden_bags::read(folder + name + ".txt");
    REQUIRE(torch.has("weights") ==
            (torch.mode == "sum" && std::string(name).find("weights") != std::string::npos));
    const ferry::optim::sgd sgd{.lr = 0.5};
    const ferry::optim::sparse_adam adam{.lr = 0.05};
    if (torch.mode == "max")
      follow<ferry::pooling::max, false>(torch, sgd);
    else if (torch.mode == "mean" && torch.has("adam"))
      follow<ferry::pooling::mean, false>(torch, adam);
    else if (torch.mode == "mean")
      follow<ferry::pooling::mean, false>(torch, sgd);
    else if (torch.has("weights") && torch.has("adam"))
      follow<ferry::pooling::sum, true>(torch, adam);
    else if (torch.has("weights"))
      follow<ferry::pooling::sum, true>(torch, sgd);
    else
      follow<ferry::pooling::sum, false>(torch, sgd);
  }
}

}  // namespace ferry_test::torch_test
