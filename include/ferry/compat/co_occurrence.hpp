// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/rows/scatter_add.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// The pairs of neighbouring tokens: for each of `count` positions from `first` on and each distance from 1
/// to `window`, the key left * classes + right of the earlier and the later token, and with two `sides` the
/// key of the reverse pair. Slots without a pair have the key -1. One thread for each position.
struct co_occurrence_pairs {
  const std::int64_t* tokens;
  std::int64_t first;
  std::int64_t window;
  std::int64_t sides;
  std::int64_t classes;
  bool by_distance;
  std::int64_t* keys;  ///< [count * window * sides]
  double* weights;     ///< 1, or 1 / distance

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t position = first + i;
    const std::int64_t right = tokens[position];
    bool open = right >= 0;
    for (std::int64_t distance = 1; distance <= window; ++distance) {
      const std::int64_t left = open && position >= distance ? tokens[position - distance] : -1;
      open = open && left >= 0;
      const double weight = by_distance ? 1.0 / static_cast<double>(distance) : 1.0;
      const std::int64_t slot = (i * window + distance - 1) * sides;
      for (std::int64_t side = 0; side < sides; ++side) {
        const std::int64_t key = side == 0 ? left * classes + right : right * classes + left;
        keys[slot + side] = open ? key : -1;
        weights[slot + side] = weight;
      }
    }
  }
};

/// The largest of some tokens.
struct largest_token {
  const std::int64_t* tokens;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& largest) const {
    if (tokens[i] > largest) largest = tokens[i];
  }
};

/// Takes keys apart: row = key / classes, column = key % classes.
struct split_keys {
  const std::int64_t* keys;
  std::int64_t classes;
  std::int64_t* rows;
  std::int64_t* columns;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    rows[i] = keys[i] / classes;
    columns[i] = keys[i] % classes;
  }
};

}  // namespace ferry::kernels

namespace ferry::speedtorch {

/// How a co_occurrence counts.
struct co_occurrence_options {
  std::int64_t window = 15;  ///< tokens to the left of a token that it is paired with
  bool symmetric = true;     ///< counts each pair in both orders
  bool by_distance = true;   ///< adds 1 / distance for a pair, as GloVe does; else 1
};

/// The entries of a co_occurrence that are not zero, by row, then by column.
template <MemorySpace Space>
struct co_occurrence_entries {
  tensor<std::int64_t, Space> rows;     ///< the token on the left
  tensor<std::int64_t, Space> columns;  ///< the token on the right
  tensor<double, Space> values;         ///< its sum
};

/// SpeedTorch's COM, the co-occurrence matrix of a stream of tokens, as a sparse matrix: GloVe's counts
/// (Pennington, Socher, Manning 2014; window, symmetry and distance weighting as its `cooccur` program).
/// SpeedTorch allocated total_classes^2 numbers and counted nothing.
///
///   ferry::speedtorch::co_occurrence<> counts("counts", classes, {.window = 10});
///   counts.add(exec, tokens);
///   const auto entries = counts.entries(exec);
///
///   Space   where the entries are kept: memory that kernels of the instance reach
///   tokens  rank-1 array of std::int32_t or std::int64_t in any space. A negative token ends a sentence: no
///           pair reaches over it. Pairs do not reach from one call to the next.
///
/// Deterministic: the same sums on every backend, since pairs are combined in the order of the text, in
/// pieces of a fixed size. It needs about 60 bytes for each pair of a piece (2^22 pairs) next to the entries.
/// add() blocks. Throws out_of_range for a token that is not below `classes`; the entries are then as before.
/// Throws invalid_argument if the bits of classes^2 and of the number of entries exceed 64.
template <MemorySpace Space = device_space>
class co_occurrence {
 public:
  /// No entries. Throws invalid_argument unless 1 <= classes <= 2^31 and 1 <= window <= 4096.
  co_occurrence(std::string label, std::int64_t classes, co_occurrence_options options = {})
      : label_(std::move(label)), classes_(classes), options_(options) {
    if (classes < 1 || classes > std::int64_t{1} << 31)
      throw invalid_argument(detail::joined("ferry::speedtorch::co_occurrence: '", label_, "' has ", classes,
                                            " classes, must have 1 to 2147483648"));
    if (options.window < 1 || options.window > 4096)
      throw invalid_argument(detail::joined("ferry::speedtorch::co_occurrence: '", label_,
                                            "' has a window of ", options.window, ", must be 1 to 4096"));
  }

  /// Counts the pairs of a text.
  template <class Exec, class Tokens>
  void add(const Exec& exec, const Tokens& tokens) {
    const auto count = static_cast<std::int64_t>(make_ref(tokens).rows());
    tensor<std::int64_t, Space> text(label_ + "::tokens", static_cast<std::size_t>(count));
    copy(exec, tokens, text).join();
    require_known(exec, text);
    compact(exec, runs_);
    std::vector<run> added;
    const std::int64_t sides = options_.symmetric ? 2 : 1;
    const std::int64_t piece = std::max<std::int64_t>(1, most_pairs / (options_.window * sides));
    for (std::int64_t first = 0; first < count; first += piece) {
      added.push_back(count_piece(exec, text, first, std::min(piece, count - first), sides));
      compact(exec, added);
    }
    runs_.reserve(runs_.size() + added.size());
    for (run& counts : added) runs_.push_back(std::move(counts));
  }

  /// Number of entries that are not zero.
  template <class Exec>
  [[nodiscard]] std::int64_t size(const Exec& exec) {
    while (runs_.size() > 1) merge_last(exec, runs_);
    return runs_.empty() ? 0 : static_cast<std::int64_t>(runs_.front().keys.rows());
  }

  /// The entries, as new tensors; blocks.
  template <class Exec>
  [[nodiscard]] co_occurrence_entries<Space> entries(const Exec& exec) {
    detail::require_own_kokkos(exec, "speedtorch::co_occurrence");
    const auto count = static_cast<std::size_t>(size(exec));
    co_occurrence_entries<Space> result{tensor<std::int64_t, Space>(label_ + "::rows", count),
                                        tensor<std::int64_t, Space>(label_ + "::columns", count),
                                        tensor<double, Space>(label_ + "::values", count)};
    if (count == 0) return result;
    Kokkos::parallel_for(
        "ferry::speedtorch::split_keys", range<Exec>(exec, 0, static_cast<std::int64_t>(count)),
        kernels::split_keys{runs_.front().keys.data(), classes_, result.rows.data(), result.columns.data()});
    exec.fence("ferry::speedtorch::split_keys");  // an error must not end the tensors under it
    copy(exec, runs_.front().values, result.values).join();
    exec.fence("ferry::speedtorch::co_occurrence::entries");
    return result;
  }

  /// Rows and columns of the matrix.
  [[nodiscard]] std::int64_t classes() const { return classes_; }
  /// The options of the constructor.
  [[nodiscard]] const co_occurrence_options& options() const { return options_; }

 private:
  template <class Exec>
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  static constexpr std::int64_t most_pairs = std::int64_t{1} << 22;

  /// Different keys, ascending, and their sums.
  struct run {
    tensor<std::int64_t, Space> keys;
    tensor<double, Space> values;
  };

  template <class Exec>
  void require_known(const Exec& exec, const tensor<std::int64_t, Space>& text) const {
    std::int64_t largest = -1;
    Kokkos::parallel_reduce("ferry::speedtorch::largest_token",
                            range<Exec>(exec, 0, static_cast<std::int64_t>(text.rows())),
                            kernels::largest_token{text.data()}, Kokkos::Max<std::int64_t>(largest));
    if (largest >= classes_)
      throw out_of_range(detail::joined("ferry::speedtorch::co_occurrence: the token ", largest,
                                        " is not below the ", classes_, " classes of '", label_, "'"));
  }

  template <class Exec>
  run count_piece(const Exec& exec, const tensor<std::int64_t, Space>& text, std::int64_t first,
                  std::int64_t count, std::int64_t sides) const {
    const auto slots = static_cast<std::size_t>(count * options_.window * sides);
    tensor<std::int64_t, Space> keys(label_ + "::pairs", slots);
    tensor<double, Space> weights(label_ + "::weights", slots);
    Kokkos::parallel_for("ferry::speedtorch::co_occurrence_pairs", range<Exec>(exec, 0, count),
                         kernels::co_occurrence_pairs{text.data(), first, options_.window, sides, classes_,
                                                      options_.by_distance, keys.data(), weights.data()});
    exec.fence("ferry::speedtorch::co_occurrence_pairs");  // an error must not end the tensors under it
    return sum_equal(exec, keys, weights);
  }

  /// Sums the values of equal keys in the order in which they lie; a key of -1 is none.
  template <class Exec>
  run sum_equal(const Exec& exec, const tensor<std::int64_t, Space>& keys,
                const tensor<double, Space>& values) const {
    using plan_space = std::conditional_t<detail::is_host_exec<Exec>, pageable_space, void>;
    const auto plan = make_plan(exec, keys, classes_ * classes_, bounds::skip{});
    const auto count = static_cast<std::size_t>(plan.unique_count());
    run sums{tensor<std::int64_t, Space>(label_ + "::keys", count),
             tensor<double, Space>(label_ + "::values", count)};
    init::zeros(exec, sums.values);
    if (count == 0) return sums;
    copy(exec, plan.template unique_rows<plan_space>(), sums.keys).join();
    scatter_add(exec, sums.values, plan.template inverse<plan_space>(), values, bounds::skip{}).join();
    return sums;
  }

  /// Merges the last runs until each is at least twice as long as the next, so that an entry is moved a
  /// logarithmic number of times.
  template <class Exec>
  void compact(const Exec& exec, std::vector<run>& runs) const {
    while (runs.size() > 1 && runs[runs.size() - 2].keys.rows() < 2 * runs.back().keys.rows())
      merge_last(exec, runs);
  }

  template <class Exec>
  void merge_last(const Exec& exec, std::vector<run>& runs) const {
    const run &earlier = runs[runs.size() - 2], &later = runs.back();
    const std::size_t middle = earlier.keys.rows();
    const std::size_t count = middle + later.keys.rows();
    tensor<std::int64_t, Space> keys(label_ + "::merged_keys", count);
    tensor<double, Space> values(label_ + "::merged_values", count);
    copy(exec, earlier.keys, keys.first(middle)).join();
    copy(exec, later.keys, keys.rows_between(middle, count)).join();
    copy(exec, earlier.values, values.first(middle)).join();
    copy(exec, later.values, values.rows_between(middle, count)).join();
    run merged = sum_equal(exec, keys, values);
    runs.pop_back();
    runs.back() = std::move(merged);
  }

  std::string label_;
  std::int64_t classes_;
  co_occurrence_options options_;
  std::vector<run> runs_;
};

}  // namespace ferry::speedtorch
