// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "formulas.hpp"
#include "session.hpp"

#include <ferry/ferry.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

using batch_tensor = ferry::tensor<float, ferry::device_space>;
using row_indices = ferry::tensor<std::int64_t, ferry::device_space>;

/// A table filled by its formula, to be looked at with rows of any size.
template <class Space>
class filled_table {
 public:
  filled_table(const session& run, std::size_t bytes) {
    auto begin = std::chrono::steady_clock::now();
    elements_ = ferry::tensor<float, Space>("table", bytes / 4 / 512, 512);
    allocated_ = seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    ferry::init::custom(run.exec(), elements_, element_value{512});
    filled_ = seconds_since(begin);
  }

  [[nodiscard]] auto rows_of(std::int64_t row_bytes) {
    const auto width = static_cast<std::size_t>(row_bytes / 4);
    const std::array<std::size_t, 2> extents{elements_.size() / width, width};
    return ferry::tensor_view<float, Space>(
        elements_.data(), ferry::shape<ferry::dynamic_rank>::make(extents, elements_.label(), sizeof(float)));
  }
  [[nodiscard]] double allocation_seconds() const { return allocated_; }

  [[nodiscard]] facts setting() const {
    return {{"space", std::string(Space::name)},
            {"memory", elements_.describe()},
            {"table_gib", static_cast<double>(elements_.size()) * 4 / 0x1p30},
            {"allocation_s", allocated_},
            {"fill_s", filled_}};
  }

 private:
  ferry::tensor<float, Space> elements_;
  double allocated_ = 0;
  double filled_ = 0;
};

/// The first `bytes` bytes of a table, as rows of its width.
template <class View>
View first_rows(const View& whole, std::size_t bytes) {
  const std::array<std::size_t, 2> extents{bytes / sizeof(float) / whole.width(), whole.width()};
  return View(whole.data(), ferry::shape<ferry::dynamic_rank>::make(extents, "table", sizeof(float)));
}

inline facts operator+(facts left, const facts& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// Several sets of random rows in device memory, in rotation.
class index_sets {
 public:
  template <class Formula>
  static index_sets make(session& run, std::int64_t n, std::size_t rows) {
    index_sets sets;
    for (int s = 0; s < run.chosen().index_sets; ++s) {
      sets.sets_.emplace_back("indices", n);
      ferry::init::custom(run.exec(), sets.sets_.back(), Formula{run.fresh_seed(), rows});
    }
    return sets;
  }
  [[nodiscard]] const row_indices& operator[](int call) const {
    return sets_[static_cast<std::size_t>(call) % sets_.size()];
  }
  [[nodiscard]] int count() const { return static_cast<int>(sets_.size()); }

 private:
  std::vector<row_indices> sets_;
};

/// The index sets, each sorted once beforehand.
class plan_sets {
 public:
  plan_sets(const session& run, const index_sets& sets, std::size_t rows) {
    for (int s = 0; s < sets.count(); ++s) plans_.push_back(ferry::make_plan(run.exec(), sets[s], rows));
    run.exec().fence("ferry_bench::plans");
  }
  [[nodiscard]] const ferry::row_plan& operator[](int call) const {
    return plans_[static_cast<std::size_t>(call) % plans_.size()];
  }

 private:
  std::vector<ferry::row_plan> plans_;
};

inline std::vector<std::int64_t> to_host(const row_indices& indices) {
  std::vector<std::int64_t> host_ids(indices.size());
  copy_to_host(host_ids.data(), indices.data(), host_ids.size() * sizeof(std::int64_t));
  return host_ids;
}

/// Every element on the device, and the first rows once more here: the device's own arithmetic is not its
/// only judge.
inline std::int64_t wrong_rows(const session& run, const batch_tensor& batch, const row_indices& rows) {
  const auto width = static_cast<std::int64_t>(batch.width());
  std::int64_t wrong = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(batch.size()),
                                wrong_gathered{batch.data(), rows.data(), element_value{width}});
  const auto some = std::min<std::size_t>(batch.rows(), 1000);
  std::vector<float> host_rows(some * batch.width());
  copy_to_host(host_rows.data(), batch.data(), host_rows.size() * sizeof(float));
  const auto listed = to_host(rows);
  for (std::size_t i = 0; i < host_rows.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    if (host_rows[i] != element_value{width}(listed[i / batch.width()], position % width)) ++wrong;
  }
  return wrong;
}

/// Adds the figure, or the failure where elements were wrong.
inline void conclude(session& run, figure& result, std::int64_t wrong) {
  result.verified = wrong == 0;
  run.results().add(result);
  if (wrong != 0) run.results().failed(result.name, std::to_string(wrong) + " elements are wrong");
}

/// The ratio of two figures' rates, if both were measured.
inline void compare_rates(session& run, const std::string& ours, const std::string& theirs) {
  const figure* mine = run.results().find(ours);
  const figure* reference = run.results().find(theirs);
  if (mine != nullptr && reference != nullptr && reference->gb_per_s() > 0)
    run.results().ratio(ours, theirs, mine->gb_per_s() / reference->gb_per_s());
}

/// "512B"
inline std::string bytes_text(std::int64_t row_bytes) { return std::to_string(row_bytes) + "B"; }

}  // namespace ferry_bench
