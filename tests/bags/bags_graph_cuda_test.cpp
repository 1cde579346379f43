// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "support/graph_cuda.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>

/// Bags that a graph pools: the list of long bags is empty again at the end of each launch.
namespace ferry_test::bags_graph_cuda_test {

/// Offsets of 60000 bags of 150000 positions, of which one has `length` and the others share the rest.
std::vector<std::size_t> offsets_with(std::size_t length) {
  constexpr std::size_t bags = 60'000, positions = 150'000, place = 20'000;
  std::vector<std::size_t> offsets{0};
  const std::size_t rest = positions - length;
  for (std::size_t b = 1; b <= bags; ++b) offsets.push_back(rest * b / bags + (b > place ? length : 0));
  return offsets;
}

TEST_CASE("a graph pools long bags among many short ones", "[long_bags][graph]") {
  constexpr std::size_t rows = 200, width = 128;
  auto random = generator(61);
  const stream queue(cudaStreamNonBlocking);
  {
    const auto& exec = queue.exec();
    const auto values = uneven_values<float>(random, rows * width);
    const auto ids = indices<std::int64_t>(random, 150'000, rows);
    const auto table = make<ferry::device_space>("table", rows, width, values);
    auto named = make<ferry::device_space>("indices", ids);
    auto offsets = make<ferry::device_space>("offsets", as_offsets<std::int64_t>(offsets_with(0)));
    ferry::tensor<float, ferry::device_space> out("pooled", 60'000, width);
    const auto pool = [&] {
      return ferry::gather_bags(exec, table, named, offsets, out, ferry::pooling::sum{});
    };
    pool().wait();  // loads the kernels
    ferry::ticket ticket;
    graph repeated(queue, [&] { ticket = pool(); });
    for (const std::size_t length : {90'000UL, 0UL, 1024UL, 9000UL, 9000UL}) {
      CAPTURE(length);
      const auto bags = offsets_with(length);
      put(offsets, as_offsets<std::int64_t>(bags));
      put(out, std::vector<float>(out.size(), 77.0F));
      repeated.launch();
      ticket.wait();
      CHECK(same_bits(take(out), pooled<float, float>(values, width, ids, bags, "pooling::sum").rows));
    }
  }
}

}  // namespace ferry_test::bags_graph_cuda_test
