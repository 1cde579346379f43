// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/collectives/detail/sum_in_place.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <atomic>
#include <functional>
#include <limits>
#include <utility>

namespace ferry_test::dense_test {

namespace {

void has(const std::string& text, const char* part) {
  expect(text.find(part) != std::string::npos, (std::string(part) + " in: " + text).c_str());
}

}  // namespace

TEST_CASE("the rows of a batch are dealt out as torch.chunk does it", "[distributed]") {
  for (const std::int64_t rows : {0, 1, 2, 7, 8, 9, 64, 1000})
    for (const int ranks : {1, 2, 3, 4, 8, 13}) {
      std::int64_t position = 0;
      for (int r = 0; r < ranks; ++r) {
        const auto [first, last] = ferry::split_range(rows, r, ranks);
        const std::int64_t most = (rows + ranks - 1) / ranks;
        REQUIRE(first == position);
        REQUIRE(last == std::min(rows, first + most));
        position = last;
      }
      REQUIRE(position == rows);
    }
  const auto huge = std::numeric_limits<std::int64_t>::max();
  REQUIRE(ferry::split_range(huge, 7, 8) == std::pair<std::int64_t, std::int64_t>(7 * (huge / 8 + 1), huge));
  REQUIRE(ferry::split_range(huge, 2, 3).second == huge);
  REQUIRE(ferry::split_range(3, 7, 8) == std::pair<std::int64_t, std::int64_t>(3, 3));
}

TEST_CASE("a batch is split over the ranks and put together again, and replicas get the values of one rank",
          "[distributed][devices]") {
  const watchdog guard("split and concatenate");
  const exec_space first;
  auto random = generator(31);
  for (const auto& comm : all_groups())
    for (const std::size_t rows : {0u, 1u, 5u, 64u, 203u}) {
      const int ranks = comm.size();
      INFO(ranks << " ranks, " << rows << " rows");
      const auto numbers = values<float>(random, rows * width);
      const auto batch = tensor_of(numbers, width);
      const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const bool mixed = random() % 2 == 0;  // the others have theirs in host memory
      run_ranks(comm, [&](int rank, const auto& exec) {
        const auto [begin, end] = ferry::split_range(static_cast<std::int64_t>(rows), rank, ranks);
        const auto mine = ferry::split(comm, batch);
        expect(mine.rows() == static_cast<std::size_t>(end - begin), "rows of a slice");
        expect(mine.rows() == 0 || mine.data() == batch.data() + static_cast<std::size_t>(begin) * width,
               "a slice of the batch");
        const auto check = [&, count = mine.rows()](auto space) {
          using array = ferry::tensor<float, decltype(space)>;
          const auto target = comm.device(rank);
          // One rank has the batch, and not every rank wants the whole.
          array root_batch("batch", target, rank == root ? rows : 0, width),
              part("part", target, count, width), whole("whole", target, rank == 1 ? 0 : rows, width),
              model("model", target, rows, width);
          if (root_batch.rows() != 0) ferry::copy(exec, numbers, root_batch).wait();
          ferry::init::constant(exec, part, -7);
          ferry::init::constant(exec, whole, -7);
          ferry::init::constant(exec, model, rank);
          ferry::split(exec, comm, root_batch, part, root).wait();
          expect(same_bits(contents(exec, part).data(), mine.data(), part.size()), "rows from one rank");
          ferry::concatenate(exec, comm, part, whole).wait();
          expect(same_bits(contents(exec, whole).data(), batch.data(), whole.size()), "the parts together");
          ferry::replicate(exec, comm, model, root).wait();
          expect(contents(exec, model) == std::vector<float>(model.size(), static_cast<float>(root)),
                 "replicas");
        };
        if (mixed && rank != root)
          check(host{});
        else
          check(device{});
        // Parts of other sizes, slices, and elements that are no numbers.
        const std::vector<std::int32_t> list(static_cast<std::size_t>(rank + 1), rank);
        std::vector<std::int32_t> joined(static_cast<std::size_t>(ranks * (ranks + 1) / 2), -1);
        ferry::concatenate(exec, comm, list, joined).wait();
        std::size_t position = 0;
        for (int r = 0; r < ranks; ++r)
          for (int i = 0; i <= r; ++i) expect(joined[position++] == r, "parts of different sizes");
        auto table = tensor_of(std::vector<float>(31 * width, static_cast<float>(rank)), width);
        auto some = table.rows_between(3, 9);
        ferry::replicate(exec, comm, some, root).wait();
        expect(table(3, 0) == static_cast<float>(root) && table(8, width - 1) == static_cast<float>(root) &&
                   table(2, 0) == static_cast<float>(rank) && table(9, 0) == static_cast<float>(rank),
               "a slice");
        struct pixel {
          std::int8_t r, g, b;
        };
        std::vector<pixel> picture(5, pixel{static_cast<std::int8_t>(rank), 2, 3});
        ferry::replicate(exec, comm, picture, root).wait();
        expect(picture[4].r == root, "structs");
      });
      ferry::tensor<float, host> alone("alone", rows, width);
      ferry::split(first, comm, batch, alone).wait();
      REQUIRE(same_bits(alone.data(), batch.data(), alone.size()));
      ferry::init::zeros(first, alone);
      ferry::concatenate(first, comm, batch, alone).wait();
      REQUIRE(same_bits(alone.data(), batch.data(), alone.size()));
      REQUIRE(ferry::split(comm, batch).rows() == rows);
    }
}

TEST_CASE("parallel_apply calls each replica on a rank of its own", "[distributed]") {
  const watchdog guard("parallel_apply");
  const exec_space exec;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto comm = group_of(ranks);
    std::vector<std::function<int(const std::string&)>> replicas;
    std::vector<std::string> inputs;
    for (int r = 0; r < ranks; ++r) {
      replicas.emplace_back([&, r](const std::string& input) {
        expect(comm.rank() == r, "the rank of a replica");
        ferry::tensor<std::int64_t, host> sum("sum", 1);
        sum(0) = static_cast<std::int64_t>(input.size());
        ferry::all_reduce(exec, comm, sum).wait();
        return static_cast<int>(sum(0)) * 100 + r;
      });
      inputs.emplace_back(static_cast<std::size_t>(r), 'x');
    }
    const std::vector<int> outputs = ferry::parallel_apply(comm, replicas, inputs);
    REQUIRE(outputs.size() == replicas.size());
    for (int r = 0; r < ranks; ++r)
      REQUIRE(outputs[static_cast<std::size_t>(r)] == ranks * (ranks - 1) / 2 * 100 + r);
    inputs.emplace_back();
    REQUIRE(said<ferry::invalid_argument>([&] {
              (void)ferry::parallel_apply(comm, replicas, inputs);
            }).find("were given for the " + std::to_string(ranks) + " ranks") != std::string::npos);
    inputs.pop_back();
    std::atomic<int> called{0};
    std::vector<std::function<void(const std::string&)>> silent(
        inputs.size(), [&](const std::string& input) { called += input.empty() ? 1 : 0; });
    ferry::parallel_apply(comm, silent, inputs);
    REQUIRE(called.load() == 1);
    silent.back() = [](const std::string&) { throw std::runtime_error("the replica failed"); };
    REQUIRE(said<std::runtime_error>([&] { ferry::parallel_apply(comm, silent, inputs); }) ==
            "the replica failed");
  }
}

TEMPLATE_TEST_CASE("threads that walk over groups sum each element of arrays once", "[distributed]", float,
                   double, ferry::half_t, std::int8_t) {
  auto random = generator(5);
  for (int turn = 0; turn < 60; ++turn) {
    ferry::kernels::sum_in_place<TestType> kernel{};
    constexpr std::int64_t packet = decltype(kernel)::packet;
    kernel.count = 1 + static_cast<int>(random() % 10);
    kernel.size = static_cast<std::int64_t>(random() % 200);
    kernel.packed = random() % 2 == 0;
    const std::int64_t groups = (kernel.size + packet - 1) / packet;
    const auto first = groups == 0 ? 0 : static_cast<std::int64_t>(random()) % groups;
    kernel.first = std::abs(first) * packet;
    kernel.last = std::min(groups, std::abs(first) + 1 + static_cast<std::int64_t>(random() % 20)) * packet;
    kernel.iterations = 1 + static_cast<std::int64_t>(random() % 5);
    std::vector<std::vector<TestType>> arrays;
    for (int r = 0; r < kernel.count; ++r)
      arrays.push_back(values<TestType>(random, static_cast<std::size_t>(kernel.size)));
    auto expected = arrays;
    for (std::int64_t i = kernel.first; i < std::min(kernel.last, kernel.size); ++i) {
      const auto place = static_cast<std::size_t>(i);
      auto sum = ferry::convert<ferry::accumulation_t<TestType>>(arrays[0][place]);
      for (std::size_t r = 1; r < arrays.size(); ++r)
        sum += ferry::convert<ferry::accumulation_t<TestType>>(arrays[r][place]);
      for (auto& array : expected) array[place] = ferry::convert<TestType>(sum);
    }
    for (int r = 0; r < kernel.count; ++r) kernel.arrays[r] = arrays[static_cast<std::size_t>(r)].data();
    for (std::int64_t i = 0; i < kernel.iterations; ++i) kernel(i);
    for (std::size_t r = 0; r < arrays.size(); ++r)
      REQUIRE(same_bits(arrays[r].data(), expected[r].data(), arrays[r].size()));
  }
}

TEST_CASE("a rank whose arrays do not fit tells the others", "[distributed]") {
  const watchdog guard("failures of dense arrays");
  const exec_space exec;
  const auto comm = group_of(3);
  comm.run([&](int rank) {
    ferry::tensor<float, host> batch("batch", rank == 0 ? 7 : 0, width), part("part", 2, width),
        good("good", rank == 2 ? 1 : 3, width);
    ferry::init::zeros(exec, batch);
    const auto first = [&] { ferry::split(exec, comm, batch, rank == 1 ? part : good).wait(); };
    if (rank == 1)
      has(said<ferry::invalid_argument>(first),
          "'part' [2 x 6] in mapped_space was given for 3 of the 7 rows");
    else
      has(said<ferry::peer_error>(first), "rank 1 failed");
    ferry::split(exec, comm, batch, good).wait();
    ferry::tensor<float, host> whole("whole", rank == 2 ? 8 : 7, width);
    const auto second = [&] { ferry::concatenate(exec, comm, good, whole).wait(); };
    if (rank == 2)
      has(said<ferry::invalid_argument>(second), "'whole'");
    else
      has(said<ferry::peer_error>(second), "rank 2 failed");
    has(said<ferry::invalid_argument>([&] { ferry::replicate(exec, comm, part, 3).wait(); }), "no rank 3");
    comm.barrier();
  });
  comm.run([&](int rank) {
    ferry::tensor<float, host> model("model", rank == 0 ? 3 : 4, width);
    has(said<ferry::protocol_error>([&] { ferry::replicate(exec, comm, model).wait(); }), "replicate");
  });
}

}  // namespace ferry_test::dense_test
