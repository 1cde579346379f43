// SPDX-License-Identifier: Apache-2.0
#include "quantized.hpp"

#include <ferry/cache.hpp>

#include <catch2/catch_test_macros.hpp>

/// Caches before the parts of a quantized table, as docs/quantized.md describes them.
namespace ferry_test::quantized_caches_test {

TEST_CASE("caches before codes and scales give the rows of a batch", "[cache][quantized]") {
  using Q = ferry::quantization::mxfp8;
  auto random = generator(441);
  const std::size_t rows = 50, width = 96, n = 33;
  const auto bytes = random_codes<Q>(random, rows, width);
  auto table = table_of<Q, ferry::mapped_space>(bytes);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const exec_space exec;
  ferry::cached_table codes(table.codes(), ferry::cache::first{.rows = 20});
  ferry::cached_table scales(table.scales(), ferry::cache::first{.rows = 50});
  auto packed = table_of<Q, ferry::device_space>(random_codes<Q>(random, n, width));
  auto out = make<ferry::device_space>("out", n, width, values<float>(random, n * width));
  ferry::gather(exec, codes, ids, packed.codes()).wait();
  ferry::gather(exec, scales, ids, packed.scales()).wait();
  ferry::dequantize(exec, packed, out).wait();
  CHECK(same_values(take(out), gathered(decoded<Q>(bytes), width, ids, std::vector<float>(n * width))));
}

}  // namespace ferry_test::quantized_caches_test
