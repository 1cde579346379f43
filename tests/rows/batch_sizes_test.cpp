// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Batches on both sides of the sizes at which a device takes other kernels: distinct rows, one row, and a bad index at
/// the last position.
namespace ferry_test::batch_sizes_test {

namespace {

const std::vector<std::size_t> sizes =
    ferry::detail::is_host_exec<exec_space>
        ? std::vector<std::size_t>{1, 1025, 16385}
        : std::vector<std::size_t>{1,    63,   64,   1023, 1024,  1025,  2048,
                                   2049, 4095, 4096, 4097, 16383, 16384, 16385};
constexpr std::size_t rows = 20000, width = 4;

struct row_batch {
  exec_space exec;
  std::vector<float> content, batch;
  std::vector<std::int64_t> ids;

  row_batch(std::size_t n, bool distinct) {
    auto random = generator(static_cast<unsigned int>(400 + n));
    content = values<float>(random, rows * width);
    batch = values<float>(random, n * width);
    // Sums of many small whole numbers are exact.
    for (float& value : batch) value = std::round(8 * value);
    for (float& value : content) value = std::round(8 * value);
    ids = distinct ? unique_indices<std::int64_t>(random, n, rows) : std::vector<std::int64_t>(n, 7);
  }
  /// The table after verb(table, indices, values).
  template <class Verb>
  [[nodiscard]] std::vector<float> written(const Verb& verb) const {
    auto table = make<ferry::device_space>("weights", rows, width, content);
    const auto indices = make<ferry::device_space>("ids", ids);
    verb(table, indices, make<ferry::device_space>("values", ids.size(), width, batch));
    return take(table);
  }
  [[nodiscard]] std::vector<double> oracle(bool adds, const char* duplicates) const {
    return scattered(content, width, ids, batch, adds, duplicates);
  }
};

}  // namespace

TEST_CASE("batches of every size with distinct rows and with one row", "[scatter][search]") {
  for (const std::size_t n : sizes)
    for (const bool distinct : {true, false}) {
      CAPTURE(n, distinct);
      const row_batch rows_of_batch(n, distinct);
      const auto& exec = rows_of_batch.exec;
      CHECK(close(rows_of_batch.written([&](auto& table, const auto& indices, const auto& values) {
        ferry::scatter(exec, table, indices, values).wait();
      }),
                  rows_of_batch.oracle(false, "duplicates::last")));
      CHECK(close(rows_of_batch.written([&](auto& table, const auto& indices, const auto& values) {
        ferry::scatter_add(exec, table, indices, values).wait();
      }),
                  rows_of_batch.oracle(true, "duplicates::sum")));
      if (!distinct) continue;
      CHECK(close(rows_of_batch.written([&](auto& table, const auto& indices, const auto& values) {
        ferry::scatter(exec, table, indices, values, ferry::duplicates::assume_unique{}).wait();
      }),
                  rows_of_batch.oracle(false, "duplicates::last")));
      CHECK(close(rows_of_batch.written([&](auto& table, const auto& indices, const auto& values) {
        ferry::scatter_add(exec, table, indices, values, ferry::duplicates::assume_unique{}).wait();
      }),
                  rows_of_batch.oracle(true, "duplicates::sum")));
    }
}

TEST_CASE("batches of every size whose last index is bad write nothing", "[scatter][search]") {
  for (const std::size_t n : sizes)
    for (const bool distinct : {true, false}) {
      CAPTURE(n, distinct);
      row_batch rows_of_batch(n, distinct);
      rows_of_batch.ids.back() = rows + 5;
      const auto& exec = rows_of_batch.exec;
      const auto refused = [&](const auto& verb) {
        CHECK(same_bits(rows_of_batch.written([&](auto& table, const auto& indices, const auto& values) {
          CHECK_THROWS_MATCHES(
              verb(table, indices, values).wait(), ferry::out_of_range,
              Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(std::to_string(rows + 5)) &&
                                              Catch::Matchers::ContainsSubstring(std::to_string(n - 1))));
        }),
                        rows_of_batch.content));
      };
      using ferry::duplicates::assume_unique;
      refused([&](auto& table, const auto& indices, const auto& values) {
        return ferry::scatter(exec, table, indices, values);
      });
      refused([&](auto& table, const auto& indices, const auto& values) {
        return ferry::scatter_add(exec, table, indices, values);
      });
      if (!distinct) continue;
      refused([&](auto& table, const auto& indices, const auto& values) {
        return ferry::scatter(exec, table, indices, values, assume_unique{});
      });
      refused([&](auto& table, const auto& indices, const auto& values) {
        return ferry::scatter_add(exec, table, indices, values, assume_unique{});
      });
    }
}

}  // namespace ferry_test::batch_sizes_test
