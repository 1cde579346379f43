// SPDX-License-Identifier: Apache-2.0
#include "support/graph_cuda.hpp"
#include "support/test.hpp"

/// Rows of two tables in a graph, which reads the lists of each launch.
namespace ferry_test::copy_rows_graph_cuda_test {
TEST_CASE("a graph copies the rows that its lists name, and nothing for a bad one", "[copy_rows][graph]") {
  auto random = generator(3);
  const std::size_t rows = 64, width = 48, count = 20;
  const stream queue(cudaStreamNonBlocking);
  {
    const auto& exec = queue.exec();
    const auto content = values<float>(random, rows * width);
    const auto poison = values<float>(random, rows * width);
    const auto source = make<ferry::mapped_space>("from", rows, width, content);
    auto target = make<ferry::device_space>("to", rows, width, poison);
    auto reads = make<ferry::device_space>("reads", unique_indices<std::int64_t>(random, count, rows));
    auto writes = make<ferry::device_space>("writes", unique_indices<std::int64_t>(random, count, rows));
    const auto copy = [&] {
      return ferry::copy_rows(exec, source, reads, target, writes, ferry::duplicates::assume_unique{},
                              ferry::occupancy::blocks<4>{});
    };
    copy().wait();
    ferry::ticket ticket;
    graph repeated(queue, [&] { ticket = copy(); });
    for (int launch = 0; launch < 6; ++launch) {
      const bool is_bad = launch == 1 || launch == 4;
      auto list = unique_indices<std::int64_t>(random, count, rows);
      const auto written = unique_indices<std::int64_t>(random, count, rows);
      if (is_bad) list[7] = 1000;
      put(reads, list);
      put(writes, written);
      put(target, poison);
      repeated.launch();
      if (is_bad) {
        CHECK_THROWS_MATCHES(ticket.wait(), ferry::out_of_range,
                             MessageMatches(ContainsSubstring("source row 1000 at position 7")));
        CHECK(take(target) == poison);
        continue;
      }
      ticket.wait();
      auto expected = poison;
      for (std::size_t p = 0; p < count; ++p)
        for (std::size_t c = 0; c < width; ++c)
          expected[static_cast<std::size_t>(written[p]) * width + c] =
              content[static_cast<std::size_t>(list[p]) * width + c];
      CHECK(take(target) == expected);
    }
  }
}

}  // namespace ferry_test::copy_rows_graph_cuda_test
