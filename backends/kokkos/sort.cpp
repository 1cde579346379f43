// SPDX-License-Identifier: Apache-2.0
#include "sort.hpp"

#include "../enabled.hpp"
#include "../sorted_keys.hpp"
#include "launch.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ferry::kokkos {

namespace {

/// A pass over one digit. A run of neighbouring keys has one thread, so keys of a digit keep their order.
struct digit_pass {
  static constexpr int digit_bits = 4, digits = 1 << digit_bits;
  static constexpr std::int64_t run_keys = 32, most_runs = std::int64_t{1} << 17;

  const std::uint64_t* keys;
  const std::int64_t* values;
  std::uint64_t* keys_out;
  std::int64_t* values_out;
  std::int64_t count;
  std::int64_t runs;
  int shift;
  int width;              ///< bits: the last digit must not look past those of the sort
  std::uint64_t* counts;  ///< [digits][runs]; then the offsets of the first keys

  static std::int64_t runs_for(std::int64_t count) {
    return std::clamp<std::int64_t>((count + run_keys - 1) / run_keys, 1, most_runs);
  }
  KOKKOS_FUNCTION int digit(std::uint64_t key) const {
    return static_cast<int>(key >> shift & ((std::uint64_t{1} << width) - 1));
  }
  KOKKOS_FUNCTION std::int64_t begin(std::int64_t run) const {
    const std::int64_t more = count % runs;
    return count / runs * run + (run < more ? run : more);
  }
};

struct count_digits : digit_pass {
  KOKKOS_FUNCTION void operator()(std::int64_t run) const {
    std::uint64_t digit_counts[digits] = {};
    for (std::int64_t i = begin(run); i < begin(run + 1); ++i) ++digit_counts[digit(keys[i])];
    for (int d = 0; d < digits; ++d) counts[d * runs + run] = digit_counts[d];
  }
};

/// A scan: each count becomes the number of keys before.
struct sum_digits {
  std::uint64_t* counts;

  using value_type = std::uint64_t;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::uint64_t& sum, bool final) const {
    const std::uint64_t digit_count = counts[i];
    if (final) counts[i] = sum;
    sum += digit_count;
  }
};

struct move_keys : digit_pass {
  KOKKOS_FUNCTION void operator()(std::int64_t run) const {
    std::uint64_t next[digits];
    for (int d = 0; d < digits; ++d) next[d] = counts[d * runs + run];
    for (std::int64_t i = begin(run); i < begin(run + 1); ++i) {
      const std::uint64_t key = keys[i], offset = next[digit(key)]++;
      keys_out[offset] = key;
      if (values != nullptr) values_out[offset] = values[i];
    }
  }
};

template <class Exec, class Functor>
void scan(const Exec& exec, const std::string& label, std::int64_t count, const Functor& functor) {
  const auto lock = detail::lock_shortly(launch_guard());
  Kokkos::parallel_scan(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
                        functor);
}

}  // namespace

std::size_t sort_functions::sort_bytes(std::int64_t count, int, int) {
  return static_cast<std::size_t>(digit_pass::runs_for(count)) * digit_pass::digits * sizeof(std::uint64_t);
}

template <ExecutionSpace Exec>
void sort_functions::sort_pairs(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                                std::int64_t*& values, std::int64_t* other_values, std::int64_t count,
                                int first_bit, int bits, void* workspace, std::size_t) {
  static const std::string count_label = "ferry::make_plan::sort::count";
  static const std::string sum_label = "ferry::make_plan::sort::sum";
  static const std::string move_label = "ferry::make_plan::sort::move";
  if (count <= 1) return;
  const std::int64_t runs = digit_pass::runs_for(count);
  auto* const counts = static_cast<std::uint64_t*>(workspace);
  for (int shift = first_bit; shift < bits; shift += digit_pass::digit_bits) {
    const digit_pass pass{keys,  values, other_keys, other_values,
                          count, runs,   shift,      std::min(digit_pass::digit_bits, bits - shift),
                          counts};
    launch_functions::launch_range(exec, count_label, runs, count_digits{pass});
    scan(exec, sum_label, runs * digit_pass::digits, sum_digits{counts});
    launch_functions::launch_range(exec, move_label, runs, move_keys{pass});
    std::swap(keys, other_keys);
    std::swap(values, other_values);
  }
}

template <ExecutionSpace Exec, class Terms>
void sort_functions::inclusive_sum(const Exec& exec, const Terms& terms, std::uint64_t* sums,
                                   std::int64_t count, void*, std::size_t) {
  static const std::string label = "ferry::make_plan::sum";
  scan(exec, label, count, kernels::running_sum<Terms>{terms, sums});
}

#define FERRY_KOKKOS_SUM(EXEC, TERMS)                                                                  \
  template void sort_functions::inclusive_sum(const EXEC&, TERMS const&, std::uint64_t*, std::int64_t, \
                                              void*, std::size_t);
#define FERRY_KOKKOS_SORTS(EXEC)                                                                         \
  template void sort_functions::sort_pairs(const EXEC&, std::uint64_t*&, std::uint64_t*, std::int64_t*&, \
                                           std::int64_t*, std::int64_t, int, int, void*, std::size_t);   \
  FERRY_KOKKOS_SUM(EXEC, kernels::sorted_keys)                                                           \
  FERRY_KOKKOS_SUM(EXEC, const std::uint32_t*)
FERRY_FOR_SPACES_OF_DEVICE(FERRY_KOKKOS_SORTS)
#undef FERRY_KOKKOS_SORTS
#undef FERRY_KOKKOS_SUM

}  // namespace ferry::kokkos
