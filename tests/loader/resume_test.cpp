// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader.hpp>
#include <ferry/loader/detail/pipeline.hpp>

#include "support/captured_stderr.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

/// Prefetchers that go on within an epoch, against those that never stopped.
namespace ferry_test::resume_test {

using ferry::batch_request;
using ferry::prefetch_options;

/// A batch as a loop sees it: epoch, number, samples.
struct seen_batch {
  std::int64_t epoch, number;
  std::vector<std::int64_t> samples;
  bool operator==(const seen_batch&) const = default;
};

/// Makes the numbers of its samples, and counts its calls.
auto counted_samples(std::int64_t samples, std::atomic<std::int64_t>& calls) {
  return ferry::made_by(
      samples,
      [&calls](const batch_request& request, std::span<std::int64_t> numbers) {
        ++calls;
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = request.samples[i];
      },
      ferry::batch_field<std::int64_t>("number"));
}

/// All batches from options.first_batch on. Every epoch but the last one ends with an empty optional.
std::vector<seen_batch> all_batches(std::int64_t samples, const prefetch_options& options) {
  const exec_space exec;
  std::atomic<std::int64_t> calls{0};
  std::vector<seen_batch> batches;
  ferry::prefetcher loader(exec, counted_samples(samples, calls), options);
  REQUIRE(loader.position() == options.first_batch);
  const std::int64_t per_epoch = loader.batches_per_epoch();
  for (std::int64_t epoch = options.first_batch / per_epoch; epoch < options.epochs; ++epoch)
    while (auto batch = loader.next()) {
      REQUIRE(batch->epoch() == options.first_epoch + epoch);
      const auto numbers = batch->template host<0>();
      seen_batch got{batch->epoch(), batch->number(), {}};
      for (std::size_t i = 0; i < batch->rows(); ++i) {
        REQUIRE(numbers(i) == batch->samples()[i]);
        got.samples.push_back(numbers(i));
      }
      batches.push_back(std::move(got));
      REQUIRE(loader.position() == options.first_batch + static_cast<std::int64_t>(batches.size()));
    }
  CHECK_FALSE(loader.next().has_value());
  CHECK(calls == static_cast<std::int64_t>(batches.size()));  // no batch before the first one is made
  return batches;
}

TEST_CASE("a prefetcher that begins at any batch serves the rest of the epochs", "[prefetcher][resume]") {
  const watchdog dog("resume", std::chrono::seconds(300));
  auto random = generator();
  for (const bool shuffled : {false, true})
    for (const auto last : {ferry::last_batch::keep, ferry::last_batch::drop}) {
      constexpr std::int64_t samples = 103, batch = 10, epochs = 3, first_epoch = 4;
      prefetch_options options{.batch = batch, .workers = 2, .last = last, .epochs = epochs};
      options.first_epoch = first_epoch;
      if (shuffled) options.shuffle = random();
      const std::int64_t per_epoch = last == ferry::last_batch::keep ? 11 : 10;
      // The oracle: the documented order, cut into batches.
      std::vector<seen_batch> expected;
      for (std::int64_t epoch = first_epoch; epoch < first_epoch + epochs; ++epoch)
        for (std::int64_t k = 0; k < per_epoch; ++k) {
          seen_batch next{epoch, k, {}};
          for (std::int64_t i = k * batch; i < std::min(samples, (k + 1) * batch); ++i)
            next.samples.push_back(
                shuffled ? ferry::permutation(samples, *options.shuffle, static_cast<std::uint64_t>(epoch))(i)
                         : i);
          expected.push_back(std::move(next));
        }
      for (std::int64_t first = 0; first <= epochs * per_epoch; ++first) {
        CAPTURE(shuffled, first, per_epoch);
        options.first_batch = first;
        REQUIRE(all_batches(samples, options) ==
                std::vector<seen_batch>(expected.begin() + first, expected.end()));
      }
    }
}

TEST_CASE("ranks go on at the same batch", "[prefetcher][resume]") {
  const watchdog dog("resume");
  for (int rank = 0; rank < 3; ++rank) {
    prefetch_options options{.batch = 4, .shuffle = 7, .epochs = 2, .rank = rank, .ranks = 3};
    const auto whole = all_batches(100, options);
    for (const std::int64_t first : {1, 8, 9, 13}) {
      options.first_batch = first;
      CHECK(all_batches(100, options) == std::vector<seen_batch>(whole.begin() + first, whole.end()));
    }
  }
}

TEST_CASE("a start far inside of a run without end costs nothing", "[prefetcher][resume]") {
  const watchdog dog("resume");
  const exec_space exec;
  std::atomic<std::int64_t> calls{0};
  constexpr std::int64_t samples = std::int64_t{1} << 40, per_epoch = samples / 8;
  constexpr std::int64_t first = 3 * per_epoch + per_epoch / 2 + 5;
  ferry::prefetcher loader(exec, counted_samples(samples, calls),
                           {.batch = 8, .shuffle = 3, .epochs = 0, .first_batch = first});
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  CHECK(batch->epoch() == 3);
  CHECK(batch->number() == per_epoch / 2 + 5);
  CHECK(batch->host<0>()(2) == ferry::permutation(samples, 3, 3)((per_epoch / 2 + 5) * 8 + 2));
  CHECK(loader.position() == first + 1);
  CHECK(calls <= 5);
  // The table of times begins with the first epoch that is served.
  REQUIRE(loader.times().size() == 1);
  CHECK(loader.times()[0].epoch == 3);
}

TEST_CASE("a first batch that is none is refused", "[prefetcher][resume]") {
  const auto said_of = [](std::int64_t samples, const prefetch_options& options) {
    return said<ferry::invalid_argument>(
        [&] { static_cast<void>(ferry::detail::batch_order(samples, options)); });
  };
  CHECK(said_of(10, {.batch = 3, .epochs = 2, .first_batch = 9}) ==
        "ferry::prefetcher: first_batch is 9, must be from 0 to 8, the batches of all epochs");
  CHECK(has(said_of(10, {.batch = 3, .first_batch = -1}), "first_batch is -1, must be from 0 to 4"));
  CHECK(has(said_of(0, {.first_batch = 1}), "from 0 to 0"));
  CHECK(said_of(10, {.batch = 3, .epochs = 2, .first_batch = 8}).empty());
  CHECK(said_of(10, {.batch = 3, .epochs = 0, .first_batch = std::numeric_limits<std::int64_t>::max()})
            .empty());
}

TEST_CASE("a resumed prefetcher that is not used says nothing", "[prefetcher][resume]") {
  const exec_space exec;
  std::atomic<std::int64_t> calls{0};
  captured_stderr output;
  {
    const ferry::prefetcher loader(exec, counted_samples(10, calls),
                                   {.batch = 5, .epochs = 3, .first_batch = 2});
  }
  CHECK(output.text().empty());
}

struct trained {
  std::vector<float> table;
  std::vector<std::vector<float>> fields;
  std::int64_t steps = 0;
  std::int64_t position = 0;
  bool operator==(const trained&) const = default;
};

/// Trains from `begin` on, and stops after `steps` steps in all, as a run does that is killed there.
trained train(trained begin, int ahead, std::int64_t steps) {
  constexpr std::int64_t rows = 40, width = 5, samples = 90, batch = 8, epochs = 2;  // rows meet again soon
  const exec_space exec;
  const ferry::optim::adam adam{.lr = 1e-2};
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  auto state = ferry::optim::make_state(adam, table);
  put(table, begin.table);
  for (int f = 0; f < static_cast<int>(begin.fields.size()); ++f)
    put(state.field(f), begin.fields[static_cast<std::size_t>(f)]);
  state.set_steps(begin.steps);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i * i % rows);
  ferry::tensor<float, ferry::device_space> grads("grads", batch, width);
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(ids),
                                {.batch = batch,
                                 .workers = 2,
                                 .shuffle = 11,
                                 .epochs = epochs,
                                 .first_batch = begin.position,
                                 .ahead = ahead});
  const std::int64_t per_epoch = batches.batches_per_epoch();
  for (std::int64_t epoch = begin.position / per_epoch; epoch < epochs; ++epoch)
    while (state.steps() < steps) {
      auto got = batches.next();
      if (!got) break;
      const auto part = grads.first(got->gathered().rows());
      ferry::copy(exec, got->gathered(), part).wait();
      ferry::step(exec, adam, table, state, got->plan(), part).wait();
      CHECK(batches.position() == state.steps());
    }
  trained end{take(table), {}, state.steps(), batches.position()};
  for (int f = 0; f < state.fields(); ++f) end.fields.push_back(take(state.field(f)));
  return end;
}

TEST_CASE("a table whose rows are read ahead is trained on from any batch", "[row_prefetcher][resume]") {
  const watchdog dog("resume", std::chrono::seconds(300));
  auto random = generator();
  const trained begin{values<float>(random, 200), {}, 0, 0};
  for (const int ahead : {1, 4}) {
    const trained whole = train(begin, ahead, 1000);
    REQUIRE(whole.steps == 24);  // 12 batches of two epochs per_epoch
    for (std::int64_t stop = 0; stop <= 24; ++stop) {
      CAPTURE(ahead, stop);
      const trained half = train(begin, ahead, stop);
      REQUIRE(half.position == stop);
      REQUIRE(train(half, ahead, 1000) == whole);
    }
  }
}

}  // namespace ferry_test::resume_test
