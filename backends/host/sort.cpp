// SPDX-License-Identifier: Apache-2.0
#include "../enabled.hpp"
#include "../sorted_keys.hpp"

#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ferry::host {

namespace {

struct radix_pass {
  static constexpr int digit_bits = 11;
  static constexpr std::size_t buckets = std::size_t{1} << digit_bits;

  const std::uint64_t* keys;
  const std::int64_t* values;
  std::uint64_t* keys_out;
  std::int64_t* values_out;
  std::int64_t count;
  std::int64_t chunks;
  int shift;
  int digit_width;       // bits of this pass: the last one must not look past `bits`
  std::int64_t* places;  // [chunks][buckets]

  KOKKOS_FUNCTION std::size_t digits() const { return std::size_t{1} << digit_width; }
  KOKKOS_FUNCTION std::size_t digit(std::uint64_t key) const { return (key >> shift) & (digits() - 1); }
  KOKKOS_FUNCTION std::int64_t begin(std::int64_t chunk) const {
    return count / chunks * chunk + min_of(chunk, count % chunks);
  }
  KOKKOS_FUNCTION static std::int64_t min_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  /// The number of passes over `width` bits that costs least for a chunk of `count` keys. A pass counts and
  /// moves the keys, and clears and adds the counts of all digits; a key costs about twice a digit.
  static int passes(std::int64_t count, int width) {
    const auto cost = [&](int number) {
      return number * (2 * count + (std::int64_t{1} << ((width + number - 1) / number)));
    };
    int best = (width + digit_bits - 1) / digit_bits;
    while (best < width && cost(best + 1) < cost(best)) ++best;
    return best;
  }
};

/// Sorts few pairs by insertion, in place. Keys whose digits agree keep their order.
struct inserted_pairs {
  /// For random keys insertion is as fast as the passes at 32 keys of 10 bits, 37 of 17, 50 of 27, 62 of 40
  /// (AMD Zen 4, GCC 12).
  static constexpr std::int64_t most = 32;

  std::uint64_t* keys;
  std::int64_t* values;
  int shift;
  int width;

  void sort(std::int64_t count) const {
    const std::uint64_t mask = width < 64 ? (std::uint64_t{1} << width) - 1 : ~std::uint64_t{0};
    for (std::int64_t i = 1; i < count; ++i) {
      const std::uint64_t key = keys[i];
      const std::uint64_t digits = key >> shift & mask;
      const std::int64_t value = values != nullptr ? values[i] : 0;
      std::int64_t place = i;
      for (; place > 0 && (keys[place - 1] >> shift & mask) > digits; --place) {
        keys[place] = keys[place - 1];
        if (values != nullptr) values[place] = values[place - 1];
      }
      keys[place] = key;
      if (values != nullptr) values[place] = value;
    }
  }
};

struct count_digits : radix_pass {
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    std::int64_t* counts = places + static_cast<std::size_t>(chunk) * buckets;
    for (std::size_t b = 0; b < digits(); ++b) counts[b] = 0;
    for (std::int64_t i = begin(chunk); i < begin(chunk + 1); ++i) ++counts[digit(keys[i])];
  }
};

struct move_pairs : radix_pass {
  KOKKOS_FUNCTION void operator()(std::int64_t chunk) const {
    std::int64_t* next = places + static_cast<std::size_t>(chunk) * buckets;
    for (std::int64_t i = begin(chunk); i < begin(chunk + 1); ++i) {
      const std::int64_t place = next[digit(keys[i])]++;
      keys_out[place] = keys[i];
      if (values != nullptr) values_out[place] = values[i];
    }
  }
};

/// One chunk is sorted in the calling thread.
template <class Exec, class Functor>
void for_each_chunk(const Exec& exec, const std::string& label, const Functor& functor) {
  if (functor.chunks == 1) {
    const detail::tool_kernel region(exec, label);
    return functor(std::int64_t{0});
  }
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, detail::host_range<range>(exec, functor.chunks), functor);
  exec.fence(label);
}

std::int64_t most_chunks(std::int64_t count) {
  return std::clamp<std::int64_t>((count + 4095) / 4096, 1, 256);
}

}  // namespace

std::size_t sort_functions::sort_bytes(std::int64_t count, int, int) {
  return static_cast<std::size_t>(most_chunks(count)) * radix_pass::buckets * sizeof(std::int64_t);
}

template <HostExecutionSpace Exec>
void sort_functions::sort_pairs(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                                std::int64_t*& values, std::int64_t* other_values, std::int64_t count,
                                int first_bit, int bits, void* workspace, std::size_t) {
  if (count <= 1 || bits <= first_bit) return;
  if (count <= inserted_pairs::most) {
    static const std::string label = "ferry::make_plan::sort::insert";
    const detail::tool_kernel region(exec, label);
    return inserted_pairs{keys, values, first_bit, bits - first_bit}.sort(count);
  }
  const std::int64_t chunks = std::clamp<std::int64_t>(detail::concurrency_of(exec), 1, most_chunks(count));
  auto* places = static_cast<std::int64_t*>(workspace);
  const int passes = radix_pass::passes(count / chunks, bits - first_bit);
  for (int number = 0, shift = first_bit; number < passes; ++number) {
    const int width = (bits - shift + passes - number - 1) / (passes - number);
    const radix_pass pass{keys, values, other_keys, other_values, count, chunks, shift, width, places};
    static const std::string count_label = "ferry::make_plan::sort::count";
    for_each_chunk(exec, count_label, count_digits{pass});
    std::int64_t sum = 0;
    for (std::size_t b = 0; b < pass.digits(); ++b)
      for (std::int64_t c = 0; c < chunks; ++c) {
        std::int64_t& place = places[static_cast<std::size_t>(c) * radix_pass::buckets + b];
        const std::int64_t amount = place;
        place = sum;
        sum += amount;
      }
    static const std::string move_label = "ferry::make_plan::sort::move";
    for_each_chunk(exec, move_label, move_pairs{pass});
    std::swap(keys, other_keys);
    std::swap(values, other_values);
    shift += width;
  }
}

template <HostExecutionSpace Exec>
void sort_functions::sort_keys(const Exec& exec, std::uint64_t*& keys, std::uint64_t* other_keys,
                               std::int64_t count, int first_bit, int bits, void* workspace,
                               std::size_t workspace_bytes) {
  std::int64_t* no_values = nullptr;
  sort_pairs(exec, keys, other_keys, no_values, nullptr, count, first_bit, bits, workspace, workspace_bytes);
}

template <HostExecutionSpace Exec, class Terms>
void sort_functions::inclusive_sum(const Exec& exec, const Terms& terms, std::uint64_t* sums,
                                   std::int64_t count, void*, std::size_t) {
  static const std::string label = "ferry::make_plan::sum";
  const kernels::running_sum<Terms> sum{terms, sums};
  if (detail::stays_in_caller(exec, count * static_cast<std::int64_t>(2 * sizeof(std::uint64_t)))) {
    const detail::tool_kernel region(exec, label);
    std::uint64_t total = 0;
    for (std::int64_t k = 0; k < count; ++k) sum(k, total, true);
    return;
  }
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_scan(label, detail::host_range<range>(exec, count), sum);
}

#define FERRY_HOST_SUM(EXEC, TERMS)                                                                    \
  template void sort_functions::inclusive_sum(const EXEC&, TERMS const&, std::uint64_t*, std::int64_t, \
                                              void*, std::size_t);
#define FERRY_HOST_SORTS(EXEC)                                                                             \
  template void sort_functions::sort_pairs(const EXEC&, std::uint64_t*&, std::uint64_t*, std::int64_t*&,   \
                                           std::int64_t*, std::int64_t, int, int, void*, std::size_t);     \
  template void sort_functions::sort_keys(const EXEC&, std::uint64_t*&, std::uint64_t*, std::int64_t, int, \
                                          int, void*, std::size_t);                                        \
  FERRY_HOST_SUM(EXEC, kernels::sorted_keys)                                                               \
  FERRY_HOST_SUM(EXEC, const std::uint32_t*)
FERRY_FOR_HOST_EXECUTION_SPACES(FERRY_HOST_SORTS)
#undef FERRY_HOST_SORTS
#undef FERRY_HOST_SUM

}  // namespace ferry::host
