// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/int8.hpp>

namespace ferry_test::int8_test {

namespace {

/// True if sums of one value each, beginning with 0, are these values.
bool same_values_as(const ferry::tensor<float, host>& sums, const float* expected) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums.data()[i] != expected[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("a sharded gather of 8-bit rows gives the values of an ordinary table", "[distributed]") {
  const watchdog guard("sharded 8-bit rows");
  auto random = generator(61);
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 150;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      batches<float> batch(random, ranks, rows, 80);
      ferry::tensor<float, host> values("values", rows, width),
          expected("expected", batch.rows.size(), width);
      ferry::init::uniform(exec, values, -3, 5, 8);
      ferry::rowwise_int8_tensor<host> codes("codes", rows, width);
      ferry::quantize(exec, values, codes).wait();
      const auto comm = group_of(ranks);
      ferry::sharded_rowwise_int8<host, decltype(spread)> big("codes", comm, rows, width, spread);
      expect(big.rows() == rows && big.width() == width && big.row_bytes() == codes.row_bytes(), "extents");
      ferry::copy(exec, codes, big).wait();
      ferry::gather(exec, codes, batch.rows, expected).wait();
      comm.run([&](int rank) {
        const auto& mine = batch.indices_of(rank);
        const float* const expected_rows = expected.data() + batch.at(rank) * width;
        const auto check = [&](const auto& indices, auto... path) {
          ferry::tensor<float, host> out("out", mine.size(), width);
          ferry::init::constant(exec, out, -7);
          ferry::gather(exec, big, indices, out, path...).wait();
          expect(same_bits(out.data(), expected_rows, out.size()), "values");
        };
        check(mine);
        check(mine, ferry::path::exchange{});
        check(ferry::make_plan(exec, mine, rows));
        const auto plan = ferry::make_plan(exec, mine, big.records());
        check(plan);
        check(plan, ferry::path::exchange{});
        if constexpr (decltype(spread)::in_kernels) {
          check(mine, ferry::path::peer{});
          check(ferry::make_plan(exec, mine, rows), ferry::path::peer{});
        }
        ferry::tensor<float, host> pooled("pooled", mine.size(), width);
        ferry::gather_bags(exec, big, mine, 1, pooled, ferry::pooling::sum{}).wait();
        expect(same_values_as(pooled, expected_rows), "bags of one position");
        const std::vector<std::int64_t> some{0, -1, static_cast<std::int64_t>(rows)};
        ferry::tensor<ferry::half_t, host> narrow("narrow", 3, width), same("same", 1, width);
        ferry::init::constant(exec, narrow, -7);
        const auto text = said<ferry::out_of_range>([&] { ferry::gather(exec, big, some, narrow).wait(); });
        expect(text.find("2 of 3 indices") != std::string::npos, text.c_str());
        ferry::gather(exec, codes, std::vector<int>{0}, same).wait();
        expect(same_bits(narrow.data(), same.data(), width), "the good position");
        expect(static_cast<float>(narrow(1, 0)) == -7 && static_cast<float>(narrow(2, 3)) == -7,
               "the bad ones");
      });
      ferry::tensor<float, host> out("out", batch.rows.size(), width);
      ferry::gather(exec, big, batch.rows, out).wait();
      REQUIRE(same_bits(out.data(), expected.data(), out.size()));
    });
}

}  // namespace ferry_test::int8_test
