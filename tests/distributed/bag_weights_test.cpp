// SPDX-License-Identifier: Apache-2.0
#include "distributed/device_kit.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

/// step_bags of ranks with weights, their gradients and maxima, in memory of devices and of the host: against
/// the ordinary verb on the batches one after the other, and plain loops.
namespace ferry_test::bag_weights_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;
using device = ferry::device_space;

std::vector<std::vector<int>> groups() {
  std::vector<std::vector<int>> result;
  for (const int ranks : {1, 2, 3, 4}) result.push_back(all_in_turn(ranks));
  result.emplace_back(4, 0);
  return result;
}

template <class T, class Space>
std::vector<T> list_of(const main_exec& exec, const ferry::tensor<T, Space>& list) {
  std::vector<T> read(list.rows());
  if (!read.empty()) ferry::copy(exec, list, read).wait();
  return read;
}
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}

template <class T>
void append(std::vector<T>& whole, const std::vector<T>& part) {
  whole.insert(whole.end(), part.begin(), part.end());
}

/// The bags of one rank, or of all of them one after the other.
template <class Index, class Weight>
struct bag_batch {
  std::vector<Index> rows;
  std::vector<Index> offsets{0};
  std::vector<Weight> weights;
  std::vector<float> grads;
  std::size_t columns;

  [[nodiscard]] std::size_t bags() const { return offsets.size() - 1; }
  void add(const bag_batch& later) {
    for (std::size_t b = 1; b < later.offsets.size(); ++b)
      offsets.push_back(static_cast<Index>(rows.size()) + later.offsets[b]);
    append(rows, later.rows);
    append(weights, later.weights);
    append(grads, later.grads);
  }
};

template <class Index, class Weight>
bag_batch<Index, Weight> draw(std::mt19937_64& random, std::size_t table_rows, std::size_t columns,
                              bool outside) {
  bag_batch<Index, Weight> batch;
  batch.columns = columns;
  const std::size_t bags = random() % 4 == 0 ? 0 : random() % (random() % 4 == 0 ? 300 : 25);
  std::size_t positions = 0;
  for (std::size_t b = 0; b < bags; ++b) {
    positions += random() % 3 == 0 ? 0 : random() % 9;
    batch.offsets.push_back(static_cast<Index>(positions));
  }
  batch.rows = indices<Index>(random, positions, table_rows);
  for (std::size_t p = 1; p < positions; p += 3) batch.rows[p] = batch.rows[p - 1];
  if (outside)
    for (auto& row : batch.rows)
      if (random() % 5 == 0) row = static_cast<Index>(random() % 500) - 250;
  for (const double weight : values<double>(random, positions))
    batch.weights.push_back(random() % 5 == 0 ? Weight(0) : static_cast<Weight>(weight));
  batch.grads = values<float>(random, bags * columns);
  return batch;
}

/// The policies of a case.
template <class PoolingPolicy, class BoundsPolicy>
struct bag_case {
  using pooling = PoolingPolicy;
  using bounds = BoundsPolicy;
  static constexpr bool has_bad_rows = !std::is_same_v<bounds, ferry::bounds::check>;
};

/// The row of an index, -1 for none.
template <class Bounds>
std::int64_t row_of(std::int64_t index, std::size_t rows) {
  const auto count = static_cast<std::int64_t>(rows);
  if (std::is_same_v<Bounds, ferry::bounds::clamp>) return std::clamp<std::int64_t>(index, 0, count - 1);
  return index < 0 || index >= count ? -1 : index;
}

/// The gradients of the weights in double, and the sums of magnitudes that bound their errors.
template <class Case, class T, class Batch>
std::vector<std::pair<double, double>> weight_gradients(const Batch& batch, const std::vector<T>& table) {
  const std::size_t columns = batch.columns, rows = table.size() / columns;
  std::vector<std::pair<double, double>> result;
  for (std::size_t b = 0; b < batch.bags(); ++b) {
    double size = 0;
    const auto begin = static_cast<std::size_t>(batch.offsets[b]);
    const auto end = static_cast<std::size_t>(batch.offsets[b + 1]);
    for (std::size_t p = begin; p < end; ++p)
      size += row_of<typename Case::bounds>(static_cast<std::int64_t>(batch.rows[p]), rows) >= 0 ? 1 : 0;
    if (!Case::pooling::divides) size = 1;
    for (std::size_t p = begin; p < end; ++p) {
      const std::int64_t row = row_of<typename Case::bounds>(static_cast<std::int64_t>(batch.rows[p]), rows);
      double sum = 0, magnitude = 0;
      for (std::size_t c = 0; c < columns && row >= 0; ++c) {
        const double term =
            static_cast<double>(batch.grads[b * columns + c]) / size *
            static_cast<double>(static_cast<float>(table[static_cast<std::size_t>(row) * columns + c]));
        sum += term;
        magnitude += std::abs(term);
      }
      result.emplace_back(sum, magnitude);
    }
  }
  return result;
}

/// Calls test(ids, sharding) for groups and shardings of each kind.
template <class Test>
void for_groups(const Test& test) {
  for (const auto& ids : groups()) {
    INFO(ids.size() << " ranks, the last on device " << ids.back());
    for (const auto kind : {any_sharding::kind::cyclic, any_sharding::kind::block})
      test(ids, any_sharding{kind});
    test(ids, host_sharding{{any_sharding::kind::hashed}});
    test(ids, ferry::sharding::replicated{});
  }
}

/// Steps by all ranks, against those of one table: with weights, with gradients of the weights, by plans, and
/// with arrays of some ranks in host memory.
template <class T, class Space, class Index, class Weight, class Case>
void compare_weights(std::uint64_t salt) {
  if (!instances_work) return;
  const watchdog guard("weights of sharded bags");
  auto random = generator(salt);
  const main_exec first;
  const typename Case::pooling pooling{};
  const typename Case::bounds bounds{};
  const std::size_t widths[] = {1, 3, 4, 31, 64, 130};
  std::size_t round = salt;
  for_groups([&](const std::vector<int>& ids, auto spread) {
    const std::size_t columns = widths[round++ % 6], rows = 1 + random() % 90;
    INFO(rows << " rows of " << columns << ", " << decltype(spread)::name);
    const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
    ferry::tensor<T, Space> table("w", rows, columns);
    ferry::sharded_table<T, Space, decltype(spread)> big("w", comm, rows, columns, spread);
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
    const ferry::optim::adagrad rule{.lr = 0.1};
    auto state = ferry::optim::make_state(rule, table);
    auto states = ferry::optim::make_state(rule, big);
    std::vector<bag_batch<Index, Weight>> batches;
    bag_batch<Index, Weight> whole;
    whole.columns = columns;
    for (std::size_t r = 0; r < ids.size(); ++r) {
      batches.push_back(draw<Index, Weight>(random, rows, columns, Case::has_bad_rows));
      whole.add(batches.back());
    }
    const auto whole_grads = tensor_of(whole.grads, columns);
    for (int call = 0; call < 3; ++call) {
      INFO("call " << call);
      const auto before = contents(first, table);
      ferry::tensor<float, host> expected("expected", whole.rows.size());
      ferry::init::constant(first, expected, -77);
      ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, whole.weights,
                       expected, pooling, bounds)
          .wait();
      const auto close = weight_gradients<Case>(whole, before);
      for (std::size_t p = 0; p < close.size(); ++p)
        REQUIRE(std::abs(static_cast<double>(expected(p)) - close[p].first) <=
                1e-6 * static_cast<double>(columns) * close[p].second + 1e-30);
      ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, whole.weights,
                       pooling, bounds)
          .wait();
      std::vector<float> gradients;
      std::vector<std::vector<float>> parts(ids.size());
      comm.run([&](int rank, const auto& exec) {
        const auto place = static_cast<std::size_t>(rank);
        const auto& mine = batches[place];
        const ferry::device home = comm.device(rank);
        const auto grads = on_device(exec, home, mine.grads, columns);
        const auto weights = on_device(exec, home, mine.weights);
        const auto offsets = on_device(exec, home, mine.offsets);
        ferry::tensor<float, device> weight_grads("weight_grads", home, mine.rows.size());
        ferry::init::constant(exec, weight_grads, -77);
        const auto step_both = [&](const auto& named, const auto& bags, const auto& values,
                                   const auto& factors) {
          ferry::step_bags(exec, rule, big, states, named, bags, values, factors, weight_grads, pooling,
                           bounds)
              .wait();
          ferry::step_bags(exec, rule, big, states, named, bags, values, factors, pooling, bounds).wait();
        };
        if (call == 0)
          step_both(on_device(exec, home, mine.rows), offsets, grads, weights);
        else if (call == 1)
          step_both(ferry::make_plan(exec, on_device(exec, home, mine.rows), big, bounds), offsets, grads,
                    weights);
        else if (rank % 2 == 0)
          step_both(mine.rows, mine.offsets, tensor_of(mine.grads, columns), mine.weights);
        else
          step_both(on_device(exec, home, mine.rows), offsets, grads, weights);
        parts[place] = list_of(exec, weight_grads);
      });
      for (const auto& part : parts) append(gradients, part);
      REQUIRE(equal(gradients, list_of(first, expected)));
      REQUIRE(equal(contents(first, big), contents(first, table)));
    }
    // By one thread for the group.
    ferry::tensor<float, host> expected("expected", whole.rows.size()),
        gradients("gradients", whole.rows.size());
    ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, whole.weights,
                     expected, pooling, bounds)
        .wait();
    ferry::step_bags(first, rule, big, states, whole.rows, whole.offsets, whole_grads, whole.weights,
                     gradients, pooling, bounds)
        .wait();
    REQUIRE(same_bits(gradients.data(), expected.data(), gradients.size()));
    REQUIRE(equal(contents(first, big), contents(first, table)));
    REQUIRE(states.steps() == state.steps());
  });
}

/// Steps under pooling::max, which finds the maxima or takes those that a gather wrote, against those of one
/// table.
template <class T, class Space, class Index, class Case>
void compare_maxima(std::uint64_t salt) {
  if (!instances_work) return;
  const watchdog guard("maxima of sharded bags");
  auto random = generator(salt);
  const main_exec first;
  const typename Case::pooling pooling{};
  const typename Case::bounds bounds{};
  const std::size_t widths[] = {1, 3, 4, 31, 64, 130};
  std::size_t round = salt;
  for_groups([&](const std::vector<int>& ids, auto spread) {
    const std::size_t columns = widths[round++ % 6], rows = 1 + random() % 40;
    INFO(rows << " rows of " << columns << ", " << decltype(spread)::name);
    const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
    ferry::tensor<T, Space> table("w", rows, columns);
    ferry::sharded_table<T, Space, decltype(spread)> big("w", comm, rows, columns, spread);
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
    const ferry::optim::adagrad rule{.lr = 0.1};
    auto state = ferry::optim::make_state(rule, table);
    auto states = ferry::optim::make_state(rule, big);
    std::vector<bag_batch<Index, float>> batches;
    bag_batch<Index, float> whole;
    whole.columns = columns;
    for (std::size_t r = 0; r < ids.size(); ++r) {
      batches.push_back(draw<Index, float>(random, rows, columns, Case::has_bad_rows));
      whole.add(batches.back());
    }
    const auto whole_grads = tensor_of(whole.grads, columns);
    for (int call = 0; call < 3; ++call) {
      INFO("call " << call);
      ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, pooling, bounds)
          .wait();
      ferry::tensor<float, host> pooled("pooled", whole.bags(), columns);
      ferry::tensor<std::int64_t, host> maxima("maxima", whole.bags(), columns);
      ferry::gather_bags(first, table, whole.rows, whole.offsets, pooled, maxima, pooling, bounds).wait();
      ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, maxima, pooling,
                       bounds)
          .wait();
      comm.run([&](int rank, const auto& exec) {
        const auto& mine = batches[static_cast<std::size_t>(rank)];
        const ferry::device home = comm.device(rank);
        const auto grads = on_device(exec, home, mine.grads, columns);
        const auto offsets = on_device(exec, home, mine.offsets);
        ferry::tensor<float, device> out("out", home, mine.bags(), columns);
        ferry::tensor<std::int32_t, device> maxima_of_rank("maxima", home, mine.bags(), columns);
        const auto step_both = [&](const auto& named, const auto& bags, const auto& values) {
          ferry::step_bags(exec, rule, big, states, named, bags, values, pooling, bounds).wait();
          ferry::gather_bags(exec, big, named, bags, out, maxima_of_rank, pooling, bounds).wait();
          ferry::step_bags(exec, rule, big, states, named, bags, values, maxima_of_rank, pooling, bounds)
              .wait();
        };
        if (call == 0)
          step_both(on_device(exec, home, mine.rows), offsets, grads);
        else if (call == 1)
          step_both(ferry::make_plan(exec, on_device(exec, home, mine.rows), big, bounds), offsets, grads);
        else if (rank % 2 == 0)
          step_both(mine.rows, mine.offsets, tensor_of(mine.grads, columns));
        else
          step_both(on_device(exec, home, mine.rows), offsets, grads);
      });
      REQUIRE(equal(contents(first, big), contents(first, table)));
    }
    ferry::step_bags(first, rule, table, state, whole.rows, whole.offsets, whole_grads, pooling, bounds)
        .wait();
    ferry::step_bags(first, rule, big, states, whole.rows, whole.offsets, whole_grads, pooling, bounds)
        .wait();
    REQUIRE(equal(contents(first, big), contents(first, table)));
    REQUIRE(states.steps() == state.steps());
  });
}

namespace pooling = ferry::pooling;  // `max` alone is CUDA's, too

}  // namespace

TEST_CASE("weights of sharded bags, and their gradients, have the bits of one table",
          "[distributed][kernels]") {
  compare_weights<float, device, std::int64_t, float, bag_case<pooling::mean, ferry::bounds::skip>>(501);
  compare_weights<float, host, std::int32_t, double, bag_case<pooling::sum, ferry::bounds::check>>(502);
  compare_weights<ferry::half_t, device, std::int64_t, std::int32_t,
                  bag_case<pooling::mean, ferry::bounds::clamp>>(503);
}

TEST_CASE("maxima of sharded bags take the steps of one table", "[distributed][kernels]") {
  compare_maxima<float, device, std::int64_t, bag_case<pooling::max, ferry::bounds::check>>(504);
  compare_maxima<float, host, std::int32_t, bag_case<pooling::max, ferry::bounds::skip>>(505);
}

namespace {

/// A step of two ranks or more on bags of a small table, in which one rank may do something else.
struct small_step {
  const main_exec first{};
  ferry::communicator comm;
  ferry::sharded_table<float, device> big;
  ferry::optim::adam rule{};
  decltype(ferry::optim::make_state(rule, big)) states;

  explicit small_step(const std::vector<int>& ids)
      : comm(ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)})),
        big("w", comm, 20, width),
        states(ferry::optim::make_state(rule, big)) {
    ferry::init::uniform(first, big, -1, 1, 5);
  }
};

}  // namespace

TEST_CASE("an error of one rank leaves rows and gradients of weights as they are", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("errors of weighted bags");
  enum class flaw { none, index, offset, few, infinite };
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    if (ranks < 2) continue;
    small_step twin(ids);
    auto before = contents(twin.first, twin.big);
    for (const bool planned : {false, true})
      for (const flaw wrong : {flaw::index, flaw::offset, flaw::few, flaw::infinite, flaw::none}) {
        std::vector<std::string> messages(ids.size());
        std::vector<char> untouched(ids.size());
        twin.comm.run([&](int rank, const auto& exec) {
          const auto place = static_cast<std::size_t>(rank);
          const bool bad = rank == ranks - 1;
          std::vector<std::int64_t> rows{1, 2, 3, 4}, offsets{0, 1, 4};
          if (bad && wrong == flaw::index) rows[2] = 77;
          if (bad && wrong == flaw::offset) offsets[1] = 9;
          const ferry::device home = twin.comm.device(rank);
          const auto named = on_device(exec, home, rows);
          const auto bags = on_device(exec, home, offsets);
          const auto weights =
              on_device(exec, home,
                        std::vector<float>(bad && wrong == flaw::few ? 3 : 4, rank % 2 == 0 ? -2.0F : 0.0F));
          ferry::tensor<float, device> grads("grads", home, 2, width), weight_grads("weight_grads", home, 4);
          ferry::init::constant(exec, grads,
                                bad && wrong == flaw::infinite ? std::numeric_limits<float>::infinity() : 1);
          ferry::init::constant(exec, weight_grads, -77);
          const auto step = [&](const auto& list) {
            try {
              ferry::step_bags(exec, twin.rule, twin.big, twin.states, list, bags, grads, weights,
                               weight_grads, pooling::mean{}, ferry::nonfinite::reject{})
                  .wait();
            } catch (const ferry::error& said) {
              messages[place] = said.what();
            }
          };
          if (planned)
            step(ferry::make_plan(exec, named, twin.big));
          else
            step(named);
          untouched[place] = list_of(exec, weight_grads) == std::vector<float>(4, -77.0F);
        });
        INFO(ranks << " ranks, flaw " << static_cast<int>(wrong) << ", planned " << planned);
        for (std::size_t r = 0; r < ids.size(); ++r) {
          if (wrong == flaw::none)
            CHECK(messages[r].empty());
          else if (wrong == flaw::few)
            CHECK_THAT(messages[r], ContainsSubstring("3"));
          else if (wrong == flaw::index)
            CHECK_THAT(messages[r],
                       ContainsSubstring("index 77 at position 2 of rank " + std::to_string(ranks - 1)));
          else if (wrong == flaw::offset)
            CHECK_THAT(messages[r], ContainsSubstring("offsets[1] = 9 of rank " + std::to_string(ranks - 1)));
          else
            CHECK_THAT(messages[r], ContainsSubstring("of rank " + std::to_string(ranks - 1)));
          // One table looks for bad gradients when it steps, too: after the gradients of weights.
          CHECK((untouched[r] != 0) == (wrong != flaw::none && wrong != flaw::infinite));
        }
        const auto after = contents(twin.first, twin.big);
        CHECK((after == before) == (wrong != flaw::none));
        before = after;
      }
    CHECK(twin.states.steps() == 2);
  }
}

TEST_CASE("gradients of weights may replace the weights", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("gradients in place of weights");
  const std::vector<std::int64_t> rows{1, 2, 1, 4}, offsets{0, 1, 4};
  for (const bool whole : {false, true}) {  // one thread for the group goes by lists
    small_step apart({0, 0}), together({0, 0});
    REQUIRE(contents(apart.first, apart.big) == contents(together.first, together.big));
    std::vector<char> equal(2, 1);
    const auto act = [&](std::size_t place, ferry::device home, const auto& exec) {
      const auto named = on_device(exec, home, rows), bags = on_device(exec, home, offsets);
      ferry::tensor<float, device> grads("grads", home, 2, width), weight_grads("weight_grads", home, 4);
      ferry::init::uniform(exec, grads, -1, 1, 7);
      auto weights = on_device(exec, home, std::vector<float>{3, -2, 5, 0.5F});
      ferry::step_bags(exec, apart.rule, apart.big, apart.states, named, bags, grads, weights, weight_grads)
          .wait();
      ferry::step_bags(exec, together.rule, together.big, together.states, named, bags, grads, weights,
                       weights)
          .wait();
      equal[place] = list_of(exec, weights) == list_of(exec, weight_grads) ? 1 : 0;
    };
    if (whole)
      act(0, apart.comm.device(0), apart.first);
    else
      apart.comm.run([&](int rank, const auto& exec) {
        const auto bound = together.comm.bind(rank);
        act(static_cast<std::size_t>(rank), apart.comm.device(rank), exec);
      });
    CHECK(equal == std::vector<char>(2, 1));
    CHECK(contents(apart.first, apart.big) == contents(together.first, together.big));
  }
}

TEST_CASE("gradients of weights that overlap a shard, or that some ranks do not want, are refused",
          "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("refused gradients of weights");
  small_step twin({0, 0});
  const auto before = contents(twin.first, twin.big);
  const std::vector<std::int64_t> rows{1, 2}, offsets{0, 2};
  std::vector<std::string> messages(2);
  twin.comm.run([&](int rank, const auto& exec) {
    const auto named = on_device(exec, twin.comm.device(rank), rows);
    const auto bags = on_device(exec, twin.comm.device(rank), offsets);
    const auto weights = on_device(exec, twin.comm.device(rank), std::vector<float>{1, 2});
    ferry::tensor<float, device> grads("grads", twin.comm.device(rank), 1, width);
    ferry::init::constant(exec, grads, 1);
    ferry::tensor<float, device> weight_grads("weight_grads", twin.comm.device(rank), 2);
    const auto of_shard = twin.big.shard(rank).flat().first(2);
    const auto act = [&](auto& sink) {
      ferry::step_bags(exec, twin.rule, twin.big, twin.states, named, bags, grads, weights, sink).wait();
    };
    messages[static_cast<std::size_t>(rank)] = rank == 1
                                                   ? said<ferry::invalid_argument>([&] { act(of_shard); })
                                                   : said<ferry::peer_error>([&] { act(weight_grads); });
  });
  for (const auto& text : messages) CHECK_THAT(text, ContainsSubstring("overlap in memory"));
  CHECK(contents(twin.first, twin.big) == before);
  twin.comm.run([&](int rank) {
    const main_exec exec;
    const std::vector<float> weights{1, 2};
    ferry::tensor<float, host> grads("grads", 1, width), weight_grads("weight_grads", 2);
    ferry::init::constant(exec, grads, 1);
    const auto text = said<ferry::protocol_error>([&] {
      if (rank == 0)
        ferry::step_bags(exec, twin.rule, twin.big, twin.states, rows, offsets, grads, weights, weight_grads)
            .wait();
      else
        ferry::step_bags(exec, twin.rule, twin.big, twin.states, rows, offsets, grads, weights).wait();
    });
    expect(!text.empty(), "ranks differ in the gradients of the weights");
  });
  CHECK(contents(twin.first, twin.big) == before);
}

}  // namespace ferry_test::bag_weights_test
