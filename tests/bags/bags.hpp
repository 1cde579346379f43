// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/oracle.hpp"
#include "support/test.hpp"

/// The verbs on bags as plain loops. A loop in the accumulation type gives the library's bits.
namespace ferry_test {

/// Bags of random lengths: empty ones, single positions, and some longer than a team has threads.
inline std::vector<std::size_t> bag_offsets(std::mt19937_64& random, std::size_t bags,
                                            std::size_t longest = 40) {
  std::vector<std::size_t> offsets{0};
  for (std::size_t b = 0; b < bags; ++b) {
    const auto kind = random() % 8;
    std::size_t length = random() % (longest + 1);
    if (kind == 0) length = 0;
    if (kind == 1) length = 1;
    if (kind == 2 && b % 11 == 3) length = 600 + random() % 100;
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

template <class Offset>
std::vector<Offset> as_offsets(const std::vector<std::size_t>& offsets) {
  return {offsets.begin(), offsets.end()};
}

template <class T>
double plain(const T& value) {
  return number(value);
}
inline std::int64_t plain(std::int32_t value) { return value; }
inline std::int64_t plain(std::int64_t value) { return value; }

struct no_weights {};

template <class Out>
struct pooled_bags {
  std::vector<Out> rows;
  std::vector<std::int64_t> positions;  // of the maxima; -1 for none
};

/// The positions at which the parts of a bag end whose rows are added one after the other, as docs/bags.md
/// defines them.
inline std::vector<std::size_t> ends_of_parts(std::size_t begin, std::size_t end) {
  const std::size_t n = end - begin, size = std::max<std::size_t>(32, n / 256);
  std::vector<std::size_t> ends;
  for (std::size_t part = 1; n >= 1024 && part < n / size; ++part) ends.push_back(begin + part * size);
  ends.push_back(end);
  return ends;
}

/// Pools in Compute, in the documented order; rows of -1 are left out.
template <class Compute, class Out, class T, class Weights = no_weights>
pooled_bags<Out> pooled(const std::vector<T>& table, std::size_t width, const std::vector<std::int64_t>& rows,
                        const std::vector<std::size_t>& offsets, std::string_view how,
                        const Weights& weights = {}) {
  const std::size_t bags = offsets.size() - 1;
  pooled_bags<Out> pooled{std::vector<Out>(bags * width), std::vector<std::int64_t>(bags * width, -1)};
  for (std::size_t b = 0; b < bags; ++b)
    for (std::size_t c = 0; c < width; ++c) {
      const auto ends = ends_of_parts(offsets[b], offsets[b + 1]);
      std::size_t part = 0;
      Compute sum{0};
      Compute total{0};
      Compute count{0};
      for (std::size_t p = offsets[b]; p < offsets[b + 1]; ++p) {
        if (p == ends[part]) {
          if (how != "pooling::max") {
            sum = sum + total;
            total = Compute{0};
          }
          ++part;
        }
        if (rows[p] < 0) continue;
        auto value = static_cast<Compute>(plain(table[static_cast<std::size_t>(rows[p]) * width + c]));
        if (how == "pooling::max") {
          if (count == Compute{0} || value > total) {
            total = value;
            pooled.positions[b * width + c] = static_cast<std::int64_t>(p);
          }
        } else {
          if constexpr (!std::is_same_v<Weights, no_weights>) {
            const Compute scaled = static_cast<Compute>(plain(weights[p])) * value;
            total = total + scaled;
          } else {
            total = total + value;
          }
        }
        count = count + Compute{1};
      }
      if (how != "pooling::max") total = sum + total;
      if (how == "pooling::mean" && count != Compute{0}) total = total / count;
      if constexpr (ferry::is_extended_number<Out>)
        pooled.rows[b * width + c] = Out(static_cast<float>(total));
      else
        pooled.rows[b * width + c] = static_cast<Out>(total);
    }
  return pooled;
}

template <class Index>
std::vector<std::int64_t> as_rows(const std::vector<Index>& indices) {
  return {indices.begin(), indices.end()};
}

/// Values whose sums are rounded, so that the order of additions shows.
template <class T>
std::vector<T> uneven_values(std::mt19937_64& random, std::size_t count) {
  std::vector<T> result(count);
  if constexpr (std::is_integral_v<T>) {
    for (auto& value : result) value = static_cast<T>(random() % 2001) - T{1000};
  } else {
    std::uniform_real_distribution<float> unit(-1.0F, 1.0F);
    for (auto& value : result) value = T(unit(random));
  }
  return result;
}

}  // namespace ferry_test
