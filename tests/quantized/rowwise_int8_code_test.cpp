// SPDX-License-Identifier: Apache-2.0
#include "quantized/rowwise_int8.hpp"
#include "support/matrix.hpp"

#include <ferry/int8.hpp>

#include <catch2/catch_template_test_macros.hpp>

/// The device's mappings of the kernels between numbers and 8-bit records, on whatever execution space there is:
/// a host backend never picks them itself.
namespace ferry_test::rowwise_int8_code_test {

TEMPLATE_TEST_CASE("encode_rows of records by teams", "[kernels][int8]", float, ferry::bhalf_t, double) {
  namespace kernels = ferry::kernels;
  auto random = generator(121);
  const exec_space exec;
  constexpr bool on_host = ferry::detail::is_host_exec<exec_space>;
  const auto run = [&]<class Tile>(Tile, std::size_t width, std::size_t rows, int teams) {
    CAPTURE(width, rows, Tile::elements, teams);
    const auto content = uneven_rows<TestType>(random, rows, width);
    const auto expected = records_of(content, width);
    const auto source = make<ferry::device_space>("weights", rows, width, content);
    ferry::rowwise_int8_tensor<ferry::device_space> table("codes", rows, width);
    put(table.records(), std::vector<std::byte>(expected.size(), std::byte{0xEE}));
    const auto wide = static_cast<std::int64_t>(width);
    const kernels::encode_rows<ferry::quantization::rowwise_int8, TestType, kernels::deciding_positions, Tile>
        kernel{source.data(),
               wide,
               wide,
               table.records().data(),
               static_cast<std::int64_t>(table.row_bytes()),
               nullptr,
               1,
               1.0f,
               static_cast<std::int64_t>(rows),
               {}};
    const int lanes = on_host ? 1 : kernel.lanes();
    Kokkos::parallel_for(
        "ferry::test", Kokkos::TeamPolicy<exec_space>(exec, teams, on_host ? 1 : 128 / lanes, lanes), kernel);
    CHECK(take(table.records()) == expected);
  };
  for (const std::size_t width : {1u, 3u, 4u, 8u, 33u, 128u, 256u, 500u})
    for (const std::size_t rows : {1u, 2u, 100u})
      for (const int teams : {1, 3, 200}) {  // fewer teams than rows walk over them
        run(kernels::single_tile{}, width, rows, teams);
        if (width % 4 == 0) run(kernels::packed_tile{}, width, rows, teams);
        if (width % 8 == 0 && width <= (on_host ? 8 : 256))
          run(kernels::wide_packed_tile{}, width, rows, teams);
      }
}

TEMPLATE_TEST_CASE("decode_rows of records by units and by parts", "[kernels][int8]", float, ferry::half_t,
                   double) {
  using memory = ferry::kernels::coded_memory<ferry::quantization::rowwise_int8>;
  using kernel = ferry::kernels::decode_rows<memory, TestType, ferry::kernels::listed_rows, false>;
  auto random = generator(122);
  const exec_space exec;
  const std::size_t rows = 50;
  const auto ids = std::vector<std::int64_t>{49, -1, 0, 3, 3, 17, -1};
  const auto listed = make<ferry::device_space>("rows", ids);
  for (const std::size_t width : {1u, 2u, 3u, 4u, 5u, 8u, 33u, 60u, 64u, 128u, 133u, 260u}) {
    const auto records = records_of(uneven_rows<float>(random, rows, width), width);
    auto table = make<ferry::device_space>("records", records);
    const auto poison = values<TestType>(random, ids.size() * width);
    const auto expected = gathered(as<TestType>(values_of(records, width)), width, ids, poison);
    const auto wide = static_cast<std::int64_t>(width);
    memory rows_of_table;
    rows_of_table.codes = table.data();
    rows_of_table.row_bytes = wide;
    rows_of_table.record_bytes = static_cast<std::int64_t>(record_bytes(width));
    for (const bool in_parts : {false, true}) {
      if (in_parts && !kernel::takes_parts(rows_of_table, false)) continue;
      const std::int64_t units = kernel::units_of(rows_of_table, wide, in_parts);
      CAPTURE(width, in_parts);
      auto out = make<ferry::device_space>("batch", poison);
      const auto items = static_cast<std::int64_t>(ids.size());
      ferry::detail::launch(exec, "ferry::test", items * units,
                            kernel{rows_of_table, wide, out.data(), wide, ferry::detail::fast_divisor(units),
                                   items, ferry::kernels::listed_rows{listed.data()}, in_parts});
      CHECK(same_values(take(out), expected));
    }
  }
}

}  // namespace ferry_test::rowwise_int8_code_test
