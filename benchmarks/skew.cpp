// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"
#include "support/tables.hpp"
#include "support/zipf.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Sums of rows that many positions name: the same batch size under uniform indices, Zipf's law, two rows and one row.
/// The figure of interest is a batch's time over that of uniform indices.
namespace ferry_bench {
namespace {

constexpr int burst = 4;

/// `hot` rows in turn.
struct hot_row {
  std::uint64_t seed;
  std::uint64_t rows;
  std::int64_t hot;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    const auto rank = static_cast<std::int64_t>(mix(mix(seed) + static_cast<std::uint64_t>(position)) %
                                                static_cast<std::uint64_t>(hot));
    return distinct_row{seed, rows}(rank, column);
  }
};

/// 0 or 1: all sums are exact in float, in any order.
struct bit_value {
  KOKKOS_FUNCTION float operator()(std::int64_t position, std::int64_t column) const {
    return static_cast<float>(mix(static_cast<std::uint64_t>(position * 131 + column)) >> 63);
  }
};

struct count_bits {
  std::int64_t* sums;
  const std::int64_t* rows;
  std::int64_t width;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t&) const {
    const std::int64_t position = i / width, column = i % width;
    if (bit_value{}(position, column) != 0)
      Kokkos::atomic_add(&sums[rows[position] * width + column], std::int64_t{1});
  }
};
struct wrong_sums {
  const float* table;
  const std::int64_t* sums;
  float factor;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (table[i] != factor * static_cast<float>(sums[i])) ++wrong;
  }
};
struct different_elements {
  const float* table;
  const float* expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (table[i] != expected[i]) ++wrong;
  }
};

using sets_of_indices = std::vector<row_indices>;

class skewed {
 public:
  skewed(session& run, std::int64_t n)
      : run_(run),
        exec_(run.exec()),
        n_(n),
        rows_(run.chosen().step_rows),
        width_(run.chosen().width),
        ceiling_(run.ceiling(in_memory().ceiling)),
        table_("table", rows_, width_),
        values_("values", n, width_),
        sums_("sums", rows_, width_) {
    ferry::init::custom(exec_, values_, bit_value{});
  }

  template <class Formula>
  void time_batches(const std::string& name, const Formula& formula) {
    sets_of_indices sets;
    for (int s = 0; s < run_.chosen().index_sets; ++s) {
      sets.emplace_back("indices", n_);
      ferry::init::custom(exec_, sets.back(), formula(run_.fresh_seed()));
    }
    ferry::init::zeros(exec_, sums_);
    count_of(exec_, "ferry_bench::sums", n_ * width_, count_bits{sums_.data(), sets[0].data(), width_});
    const auto indices = [&](int call) -> const row_indices& {
      return sets[static_cast<std::size_t>(call) % sets.size()];
    };
    const auto time = [&](const std::string& verb, const auto& call, const auto& wrong) {
      figure result;
      result.name = "skew." + verb + "." + std::to_string(n_) + "." + name;
      result.setting = facts{{"n", n_}, {"row_bytes", 4 * width_}, {"burst", std::int64_t{burst}}};
      result.counts = "batch read";
      result.ceiling = ceiling_;
      result.bytes = 4 * static_cast<double>(n_ * width_);
      result.time = measure(run_, burst, [&](int number) { return call(indices(number)); });
      ferry::init::zeros(exec_, table_);
      conclude(run_, result, wrong());
    };
    const auto size = static_cast<std::int64_t>(table_.size());
    const auto time_sums = [&](const std::string& verb, auto... policies) {
      const auto call = [&](const row_indices& ids) {
        return ferry::scatter_add(exec_, table_, ids, values_, policies...);
      };
      time(verb, call, [&] {
        call(sets[0]).wait();
        return count_of(exec_, "ferry_bench::check", size, wrong_sums{table_.data(), sums_.data(), 1.0F});
      });
    };
    time_sums("scatter_add");
    time_sums("scatter_add_any_order", ferry::duplicates::sum_any_order{});
    time_steps("sgd", ferry::optim::sgd{.lr = 1.0}, sets[0], time);
    time_steps("adam", ferry::optim::adam{}, sets[0], time);
  }

 private:
  /// Checked against a step of all rows on the sums: rows without a gradient do not move in the first step.
  template <class Rule, class Time>
  void time_steps(const std::string& verb, const Rule& rule, const row_indices& first, const Time& time) {
    auto state = ferry::optim::make_state(rule, table_);
    time(
        verb, [&](const row_indices& ids) { return ferry::step(exec_, rule, table_, state, ids, values_); },
        [&] {
          ferry::tensor<float, ferry::device_space> expected("expected", rows_, width_);
          ferry::tensor<float, ferry::device_space> gradients("gradients", rows_, width_);
          ferry::init::zeros(exec_, expected);
          ferry::copy(exec_, sums_, gradients).wait();
          auto fresh = ferry::optim::make_state(rule, table_);
          ferry::step(exec_, rule, table_, fresh, first, values_).wait();
          auto expected_state = ferry::optim::make_state(rule, expected);
          ferry::step(exec_, rule, expected, expected_state, gradients).wait();
          return count_of(exec_, "ferry_bench::check", static_cast<std::int64_t>(table_.size()),
                          different_elements{table_.data(), expected.data()});
        });
  }

  session& run_;
  Kokkos::DefaultExecutionSpace exec_;
  std::int64_t n_;
  std::int64_t rows_;
  std::int64_t width_;
  std::string ceiling_;
  ferry::tensor<float, ferry::device_space> table_;
  batch_tensor values_;
  ferry::tensor<std::int64_t, ferry::device_space> sums_;
};

void skew(session& run) {
  const auto rows = static_cast<std::uint64_t>(run.chosen().step_rows);
  for (const std::int64_t n : {run.chosen().step_n, 8 * run.chosen().step_n}) {
    skewed batches(run, n);
    batches.time_batches("uniform", [&](std::uint64_t seed) { return any_row{seed, rows}; });
    for (const auto& [name, exponent] : {std::pair("zipf_1.05", 1.05), std::pair("zipf_1.5", 1.5)})
      batches.time_batches(name, [&, power = exponent](std::uint64_t seed) {
        return zipf_row{seed, rows, seed ^ 1, power};
      });
    batches.time_batches("two_rows", [&](std::uint64_t seed) { return hot_row{seed, rows, 2}; });
    batches.time_batches("one_row", [&](std::uint64_t seed) { return hot_row{seed, rows, 1}; });
  }
}

const registration skewed_rows{"skew", skew};

}  // namespace
}  // namespace ferry_bench
