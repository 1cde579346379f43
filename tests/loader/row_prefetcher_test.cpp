// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>
#include <ferry/loader/row_prefetcher.hpp>

#include "support/arrays.hpp"
#include "support/random.hpp"
#include "support/said.hpp"
#include "support/watchdog.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// Rows that are read ahead of the steps that update them, against a loop that gathers and steps in turn.
namespace ferry_test::row_prefetcher_test {

/// The gradient of a row: depends on every bit of it.
struct gradient_of {
  ferry::tensor_view<const float, ferry::device_space> rows;
  ferry::tensor_view<float, ferry::device_space> grads;
  KOKKOS_FUNCTION void operator()(int i) const {
    for (std::size_t j = 0; j < rows.width(); ++j) {
      const auto position = static_cast<std::size_t>(i);
      grads(position, j) = 0.375f * rows(position, j) + 0.0625f * static_cast<float>(j + 1);
    }
  }
};

/// Keeps a device, or the calling thread, busy.
struct delay {
  float* sink;
  int rounds;
  KOKKOS_FUNCTION void operator()(int) const {
    float value = *sink;
    for (int i = 0; i < rounds; ++i) value = value * 1.0000001f + 1e-9f;
    *sink = value;
  }
};

namespace {

using exec_range = Kokkos::RangePolicy<exec_space>;

/// Steps of the test with random delays. FERRY_LOADER_STEPS=100000 is the long run.
int steps_wanted() {
  const char* steps_text = std::getenv("FERRY_LOADER_STEPS");
  return steps_text != nullptr ? std::atoi(steps_text) : 2000;
}

/// Sources with random rows, few enough that batches share many.
auto random_rows(std::int64_t samples, std::int64_t rows, std::size_t hot, int longest_us) {
  return ferry::made_by(
      samples,
      [=, seed = generator()()](const ferry::batch_request& request, std::span<std::int32_t> ids) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const auto position = static_cast<std::uint64_t>(request.samples[i / hot]) * hot + i % hot;
          ids[i] = static_cast<std::int32_t>(
              ferry::random::uniform(seed, position + (static_cast<std::uint64_t>(request.epoch) << 40), 0,
                                     static_cast<double>(rows)));
        }
        if (longest_us > 0 && request.number % 3 == 0)
          std::this_thread::sleep_for(
              std::chrono::microseconds(seed % static_cast<std::uint64_t>(longest_us)));
      },
      ferry::batch_field<std::int32_t>("rows", hot));
}

template <class Space, class Rule>
void train(const Rule& rule, int ahead, std::int64_t rows, std::size_t width, std::int64_t batch,
           std::size_t hot, int steps, int delays) {
  const exec_space exec;
  auto random = generator();
  ferry::tensor<float, Space> table("table", rows, width), reference("reference", rows, width);
  const std::uint64_t seed = random();
  ferry::init::normal(exec, table, 0, 1, seed);
  ferry::init::normal(exec, reference, 0, 1, seed);
  auto state = ferry::optim::make_state(rule, table);
  auto reference_state = ferry::optim::make_state(rule, reference);
  const auto most = static_cast<std::size_t>(batch) * hot;
  ferry::tensor<float, ferry::device_space> grads("grads", most, width), copied("copied", most, width);
  ferry::tensor<float, ferry::device_space> sink("sink", 1);
  ferry::init::zeros(exec, sink);
  ferry::tensor<std::int32_t, ferry::pinned_space> listed("listed", most);

  const auto source = random_rows(batch * ((steps + 1) / 2), rows, hot, delays);
  const ferry::prefetch_options options{
      .batch = batch, .workers = 2, .shuffle = seed, .epochs = 2, .ahead = ahead};
  const auto apply = [&](const auto& gathered, auto& updated, auto& its_state, const auto& plan) {
    const auto n = static_cast<int>(gathered.rows());
    const ferry::tensor_view<const float, ferry::device_space> inputs(gathered.data(), gathered.extents_of());
    Kokkos::parallel_for("gradient", exec_range(exec, 0, n), gradient_of{inputs, grads.view()});
    if (delays > 0 && random() % 4 == 0)
      Kokkos::parallel_for("delay", exec_range(exec, 0, 1),
                           delay{sink.data(), static_cast<int>(random() % 20000)});
    ferry::step(exec, rule, updated, its_state, plan, grads.first(n)).detach();
  };
  std::vector<std::vector<std::int32_t>> batches;
  ferry::row_prefetcher loader(exec, table, source, options);
  for (int epoch = 0; epoch < 2; ++epoch)
    while (auto got = loader.next()) {
      apply(got->gathered(), table, state, got->plan());
      const auto indices = got->template host<0>();
      batches.emplace_back(indices.data(), indices.data() + indices.size());
    }
  REQUIRE(static_cast<std::int64_t>(batches.size()) == 2 * loader.batches_per_epoch());
  CHECK_FALSE(loader.next().has_value());
  for (const auto& indices : batches) {
    const auto plan = ferry::make_plan(exec, indices, rows);
    const auto part = copied.first(indices.size());
    ferry::gather(exec, reference, plan, part).detach();
    apply(part, reference, reference_state, plan);
  }
  exec.fence();
  CHECK(take(table) == take(reference));
  for (int f = 0; f < state.fields(); ++f) CHECK(take(state.field(f)) == take(reference_state.field(f)));
}

}  // namespace

TEMPLATE_TEST_CASE("rows read ahead have the bits of a loop that gathers and steps in turn",
                   "[row_prefetcher]", ferry::device_space, ferry::pinned_space, ferry::mapped_space) {
  const watchdog dog("row_prefetcher", std::chrono::seconds(300));
  const ferry::optim::adam adam{.lr = 1e-2};
  const ferry::optim::sgd sgd{.lr = 1e-2};
  train<TestType>(sgd, 1, 50, 3, 8, 1, 300, 0);  // nearly every row is a hazard
  train<TestType>(adam, 1, 5000, 17, 64, 2, 200, 0);
  train<TestType>(adam, 3, 400, 5, 32, 1, 200, 0);
  train<TestType>(sgd, 8, 300, 4, 16, 3, 200, 0);
  train<TestType>(sgd, 2, 1, 1, 1, 1, 50, 0);  // one row
}

TEST_CASE("rows read ahead are never stale under random delays", "[row_prefetcher]") {
  const watchdog dog("row_prefetcher", std::chrono::seconds(3000));
  const int steps = steps_wanted();
  train<ferry::mapped_space>(ferry::optim::sgd{.lr = 1e-2}, 1, 200, 8, 16, 2, steps / 2, 60);
  train<ferry::mapped_space>(ferry::optim::adam{.lr = 1e-2}, 2, 1000, 8, 16, 2, steps - steps / 2, 60);
}

TEST_CASE("an error of the source comes after the batches before it, whose rows are read",
          "[row_prefetcher]") {
  const watchdog dog("row_prefetcher");
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 2);
  ferry::init::zeros(exec, table);
  for (const int ahead : {1, 4}) {
    ferry::row_prefetcher loader(exec, table,
                                 ferry::made_by(
                                     100,
                                     [](const ferry::batch_request& request, std::span<std::int64_t> rows) {
                                       if (request.number == 7) throw std::runtime_error("no rows");
                                       for (auto& row : rows) row = request.number;
                                     },
                                     ferry::batch_field<std::int64_t>("rows")),
                                 {.batch = 5, .workers = 2, .ahead = ahead});
    for (std::int64_t k = 0; k < 7; ++k) {
      const auto batch = loader.next();
      REQUIRE(batch.has_value());
      CHECK(batch->number() == k);
      CHECK(batch->host<0>()(4) == k);
      CHECK(batch->gathered().rows() == 5);
    }
    CHECK_THROWS_AS(loader.next(), std::runtime_error);
    CHECK_THROWS_AS(loader.next(), std::runtime_error);
  }
}

TEST_CASE("bad indices are reported by the step", "[row_prefetcher]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 2);
  ferry::init::zeros(exec, table);
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<std::int64_t> rows{1, 2, 10, 3};
  ferry::row_prefetcher loader(exec, table, ferry::samples_of(rows), {.batch = 4});
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  CHECK_THROWS_AS(ferry::step(exec, rule, table, state, batch->plan(), batch->gathered()).wait(),
                  ferry::out_of_range);
}

TEST_CASE("next() throws the error of a detached step once, and no batch is lost", "[row_prefetcher]") {
  const watchdog dog("row_prefetcher");
  const exec_space exec;
  auto table = make<ferry::mapped_space>("table", 10, 2, std::vector<float>(20, 0));
  const ferry::optim::sgd rule{.lr = 1};
  auto state = ferry::optim::make_state(rule, table);
  const auto ones = make<ferry::device_space>("ones", 4, 2, std::vector<float>(8, 1));
  std::vector<std::int64_t> rows(40);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i % 10);
  rows[13] = 10;  // in the fourth batch, whose step writes nothing
  for (const int ahead : {1, 3}) {
    ferry::init::zeros(exec, table);
    ferry::row_prefetcher loader(exec, table, ferry::samples_of(rows), {.batch = 4, .ahead = ahead});
    int batches = 0, errors = 0;
    const auto step = [&] {
      const auto batch = loader.next();
      if (!batch) return false;
      ++batches;
      ferry::step(exec, rule, table, state, batch->plan(), ones).detach();
      exec.fence("ferry_test::step");
      return true;
    };
    for (bool goes_on = true; goes_on;) {
      try {
        goes_on = step();
      } catch (const ferry::out_of_range& said) {
        CHECK(std::string(said.what()).find("index 10 at position 1") != std::string::npos);
        CHECK(batches == 4);
        ++errors;
      }
    }
    CHECK(batches == 10);
    CHECK(errors == 1);
    std::vector<float> expected(20, 0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (i / 4 != 3)
        for (std::size_t j = 0; j < 2; ++j) expected[static_cast<std::size_t>(rows[i]) * 2 + j] -= 1;
    CHECK(take(table) == expected);
  }
}

TEST_CASE("a row_prefetcher stops at any point", "[row_prefetcher]") {
  const watchdog dog("row_prefetcher");
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 100, 2);
  ferry::init::zeros(exec, table);
  const std::vector<std::int32_t> rows(1000, 3);
  for (int stop = 0; stop < 30; ++stop) {
    ferry::row_prefetcher loader(exec, table, ferry::samples_of(rows), {.batch = 7, .ahead = 1 + stop % 4});
    for (int k = 0; k < stop; ++k) REQUIRE(loader.next().has_value());
  }
  CHECK_THROWS_AS(ferry::row_prefetcher(exec, table, ferry::samples_of(rows), {.ahead = 0}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::row_prefetcher(exec, table, ferry::samples_of(rows), {.ahead = 9}),
                  ferry::invalid_argument);
}

TEST_CASE("messages of a row_prefetcher name it", "[row_prefetcher]") {
  const watchdog dog("row_prefetcher");
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 100, 2);
  ferry::init::zeros(exec, table);
  const std::vector<std::int32_t> rows(1000, 3);
  const auto refused = [&](const ferry::prefetch_options& options) {
    return said<ferry::invalid_argument>(
        [&] { ferry::row_prefetcher(exec, table, ferry::samples_of(rows), options); });
  };
  CHECK(has(refused({.batch = 0}), "ferry::row_prefetcher: batch is 0"));
  CHECK(has(refused({.batch = 4, .workers = 0}), "ferry::row_prefetcher: workers is 0"));
  CHECK(has(refused({.batch = std::int64_t{1} << 60}), "ferry::row_prefetcher: the slots of the ring"));
  CHECK(has(said<ferry::invalid_argument>(
                [&] { ferry::prefetcher(exec, ferry::samples_of(rows), {.batch = std::int64_t{1} << 60}); }),
            "ferry::prefetcher: the slots of the ring"));
  // A source that comes late.
  ferry::row_prefetcher late(
      exec, table,
      ferry::made_by(
          100,
          [](const ferry::batch_request&, std::span<std::int64_t> list) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            for (auto& row : list) row = 1;
          },
          ferry::batch_field<std::int64_t>("rows")),
      {.batch = 5, .workers = 1, .epochs = 1, .timeout = std::chrono::milliseconds(1)});
  CHECK(has(said<ferry::error>([&] { (void)late.next(); }), "ferry::row_prefetcher: batch 0 of epoch 0"));
}

}  // namespace ferry_test::row_prefetcher_test
