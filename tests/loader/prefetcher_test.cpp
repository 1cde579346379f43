// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"
#include "support/watchdog.hpp"

#include <ferry/loader.hpp>
#include <ferry/loader/prefetcher.hpp>
#include <ferry/loader/row_prefetcher.hpp>

#include <sys/wait.h>
#include <unistd.h>

namespace ferry_test::prefetcher_test {

// The prefetcher with its sources, on the default execution space.

using ferry::batch_field;
using ferry::batch_request;

/// The values of a batch's array, brought to the host.
template <class Slice>
auto fetched(const exec_space& exec, const Slice& slice) {
  std::vector<typename Slice::value_type> values(slice.size());
  ferry::copy(exec, slice, values).wait();
  return values;
}

TEST_CASE("an epoch has the rows of the tables in the order of the permutation", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  auto random = generator();
  constexpr std::size_t rows = 1003, width = 17;
  const auto x = values<float>(random, rows * width);
  const auto y = values<std::int32_t>(random, rows);
  const auto table = make<ferry::mapped_space>("x", rows, width, x);
  const std::uint64_t seed = random();
  ferry::prefetcher batches(exec, ferry::samples_of(table, y),
                            {.batch = 64, .workers = 3, .shuffle = seed, .epochs = 2});
  CHECK(batches.batches_per_epoch() == 16);
  CHECK(batches.depth() == 5);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const ferry::permutation order(rows, seed, static_cast<std::uint64_t>(epoch));
    std::size_t place = 0;
    std::int64_t number = 0;
    while (auto batch = batches.next()) {
      CHECK(batch->epoch() == epoch);
      CHECK(batch->number() == number++);
      const auto [features, labels] = batch->arrays();
      REQUIRE(features.rows() == batch->rows());
      REQUIRE(features.width() == width);
      REQUIRE(labels.rank() == 1);
      const auto got = fetched(exec, features);
      const auto got_labels = fetched(exec, labels);
      for (std::size_t i = 0; i < batch->rows(); ++i, ++place) {
        const auto row = static_cast<std::size_t>(order(static_cast<std::int64_t>(place)));
        REQUIRE(batch->samples()[i] == static_cast<std::int64_t>(row));
        REQUIRE(got_labels[i] == y[row]);
        REQUIRE(batch->host<1>()(i) == y[row]);
        for (std::size_t j = 0; j < width; ++j) REQUIRE(got[i * width + j] == x[row * width + j]);
      }
    }
    CHECK(number == 16);
    CHECK(place == rows);
  }
  CHECK_FALSE(batches.next().has_value());
  const auto times = batches.times();
  REQUIRE(times.size() == 2);
  CHECK(times[1].samples == rows);
  const std::string report = batches.report();
  CHECK(std::count(report.begin(), report.end(), '\n') == 3);
}

TEST_CASE("tables of every host space and rank are sources", "[prefetcher]") {
  const exec_space exec;
  ferry::tensor<double, ferry::pinned_space> cubes("cubes", 20, 2, 3);
  ferry::tensor<ferry::half_t, ferry::pageable_space> halves("halves", 20, 1);
  ferry::init::uniform(exec, cubes, 0, 1, 1);
  ferry::init::uniform(exec, halves, 0, 1, 2);
  Kokkos::View<std::int64_t**, Kokkos::LayoutRight, Kokkos::HostSpace> view("view", 20, 4);
  for (int i = 0; i < 80; ++i) view(i / 4, i % 4) = i;
  ferry::prefetcher batches(exec, ferry::samples_of(cubes, halves, view), {.batch = 8});
  std::size_t first = 0;
  while (auto batch = batches.next()) {
    const auto a = batch->get<0>();
    CHECK(a.rank() == 3);
    CHECK(a.extent(1) == 2);
    CHECK(a.extent(2) == 3);
    const auto got = fetched(exec, a);
    const auto integers = fetched(exec, batch->get<2>());
    for (std::size_t i = 0; i < batch->rows(); ++i) {
      for (std::size_t j = 0; j < 6; ++j) REQUIRE(got[6 * i + j] == cubes(first + i, j / 3, j % 3));
      for (std::size_t j = 0; j < 4; ++j)
        REQUIRE(integers[4 * i + j] == static_cast<std::int64_t>(4 * (first + i) + j));
      REQUIRE(batch->host<1>()(i, 0) == halves(first + i, 0));
    }
    first += batch->rows();
  }
  CHECK(first == 20);
}

TEST_CASE("a function makes batches on worker threads", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  const auto me = std::this_thread::get_id();
  std::atomic<int> arrivals{0};  // assertions are for the test's own thread
  auto source = ferry::made_by(
      1000,
      [&arrivals, me](const batch_request& request, std::span<float> x, std::span<std::int64_t> rows) {
        if (std::this_thread::get_id() == me) ++arrivals;
        if (x.size() != 3 * request.samples.size()) ++arrivals;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          rows[i] = request.samples[i] % 50;
          for (std::size_t j = 0; j < 3; ++j) x[3 * i + j] = static_cast<float>(request.samples[i]);
        }
      },
      batch_field<float>("x", 3), batch_field<std::int64_t>("rows"));
  ferry::tensor<float, ferry::mapped_space> table("table", 50, 3);
  ferry::init::zeros(exec, table);
  ferry::prefetcher batches(exec, std::move(source),
                            {.batch = 33, .workers = 2, .last = ferry::last_batch::drop});
  int count = 0;
  while (auto batch = batches.next()) {
    ferry::scatter_add(exec, table, batch->get<1>(), batch->get<0>()).detach();
    ++count;
  }
  CHECK(count == 30);
  CHECK(arrivals == 0);
  std::vector<float> expected(150);
  for (int sample = 0; sample < 990; ++sample)
    for (std::size_t j = 0; j < 3; ++j)
      expected[static_cast<std::size_t>(sample % 50) * 3 + j] += static_cast<float>(sample);
  exec.fence();
  CHECK(take(table) == expected);
}

TEST_CASE("an exception of the source is thrown in order", "[prefetcher]") {
  const exec_space exec;
  ferry::prefetcher batches(exec,
                            ferry::made_by(
                                100,
                                [](const batch_request& request, std::span<int>) {
                                  if (request.number == 6) throw std::runtime_error("sample 60 is broken");
                                },
                                batch_field<int>("x")),
                            {.batch = 10, .workers = 3});
  for (int k = 0; k < 6; ++k) REQUIRE(batches.next().has_value());
  for (int repeat = 0; repeat < 2; ++repeat)
    CHECK_THROWS_MATCHES(batches.next(), std::runtime_error, Catch::Matchers::Message("sample 60 is broken"));
}

TEST_CASE("the loop may end by an exception", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  const std::vector<float> table(1000);
  for (int stop = 0; stop < 20; ++stop) {
    const auto loop = [&] {
      ferry::prefetcher batches(exec, ferry::samples_of(table), {.batch = 5, .workers = 2});
      for (int k = 0; batches.next(); ++k)
        if (k == stop) throw std::logic_error("enough");
    };
    CHECK_THROWS_AS(loop(), std::logic_error);
  }
}

TEST_CASE("prefetchers move, and several live at once", "[prefetcher]") {
  const exec_space exec;
  std::vector<std::int32_t> table(100);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  using loader = ferry::prefetcher<exec_space, decltype(ferry::samples_of(table))>;
  std::vector<loader> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(exec, ferry::samples_of(table),
                       ferry::prefetch_options{.batch = 4, .shuffle = 1, .rank = rank, .ranks = 3});
  std::vector<int> result(100);
  for (std::int64_t k = 0; k < ranks[0].batches_per_epoch(); ++k)
    for (auto& rank : ranks) {
      const auto batch = rank.next();
      REQUIRE(batch.has_value());
      for (const auto value : fetched(exec, batch->get<0>())) ++result[static_cast<std::size_t>(value)];
    }
  CHECK(std::count(result.begin(), result.end(), 1) == 100);
  ranks.front() = std::move(ranks.back());
  CHECK_FALSE(ranks.front().next().has_value());
}

TEST_CASE("tables that do not fit together are refused", "[prefetcher]") {
  const exec_space exec;
  const std::vector<float> long_one(10), short_one(9);
  CHECK_THROWS_AS(ferry::samples_of(long_one, short_one), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::prefetcher(exec, ferry::samples_of(long_one), {.batch = 0}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::prefetcher(exec, ferry::samples_of(long_one), {.workers = 0}),
                  ferry::invalid_argument);
}

TEST_CASE("a batch may have no bytes", "[prefetcher]") {
  const exec_space exec;
  ferry::tensor<float, ferry::pinned_space> thin("thin", 10, 0);
  ferry::prefetcher batches(exec, ferry::samples_of(thin), {.batch = 4});
  std::size_t rows = 0;
  while (const auto batch = batches.next()) rows += batch->get<0>().rows();
  CHECK(rows == 10);
}

TEST_CASE("next() throws the errors of detached work on the instance, each once", "[prefetcher]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 3, 1, std::vector<float>{5, 6, 7});
  ferry::tensor<float, ferry::device_space> rows("rows", 4, 1);
  const std::vector<std::int32_t> indices{0, 1, 2, 2, 1, 3, 0, 0, 9, 1, 1, 1, 2, 2, 2, 2};
  ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 4});
  int served = 0, errors = 0;
  for (bool goes_on = true; goes_on;) {
    try {
      const auto batch = batches.next();
      goes_on = batch.has_value();
      if (!goes_on) break;
      ++served;
      ferry::gather(exec, table, batch->get<0>(), rows).detach();
      exec.fence("ferry_test::gathered");
    } catch (const ferry::out_of_range&) {
      ++errors;
    }
  }
  CHECK(served == 4);
  CHECK(errors == 2);
}

// Rows that are read ahead of the steps that update them, against a loop that gathers and steps in turn.

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

}  // namespace ferry_test::prefetcher_test
