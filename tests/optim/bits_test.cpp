// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::bits_test {

// Training whose bits must be those of the rule applied in the calling thread, one float after the other.

/// The batches of a training: some rows twice and more, but for every third.
struct bits_batches {
  static constexpr std::size_t rows = 19, n = 15;
  static constexpr int steps = 6;

  std::vector<float> start;
  std::vector<gradient_batch<float>> batch;

  bits_batches(std::mt19937_64& random, std::size_t width) {
    std::normal_distribution<float> any;
    start.resize(rows * width);
    for (auto& w : start) w = any(random);
    for (int step = 1; step <= steps; ++step) {
      gradient_batch<float> result{step % 3 == 0 ? unique_indices<std::int64_t>(random, n, rows)
                                                 : indices<std::int64_t>(random, n, rows),
                                   std::vector<float>(n * width)};
      for (auto& g : result.values) g = any(random);
      batch.push_back(std::move(result));
    }
  }
};

template <class T>
struct bits_of_training {
  std::vector<T> weights;
  std::vector<std::vector<float>> state;
};

/// Sums of duplicates in the order of the batch, then the rule, all in float.
template <class T, class Rule, int Fields>
bits_of_training<T> trained_here(const Rule& rule, const bits_batches& batches, std::size_t width) {
  bits_of_training<T> result;
  for (const float w : batches.start) result.weights.push_back(T(w));
  boost::hana::for_each(rule.fields(), [&](const auto& field) {
    if (field.active) result.state.emplace_back(batches.start.size(), static_cast<float>(field.initial));
  });
  REQUIRE(result.state.size() == static_cast<std::size_t>(Fields));
  for (int step = 1; step <= bits_batches::steps; ++step) {
    const auto& batch = batches.batch[static_cast<std::size_t>(step - 1)];
    const auto update = rule.template coefficients<float>(step);
    for (std::size_t row = 0; row < bits_batches::rows; ++row) {
      std::vector<float> sum;
      for (std::size_t p = 0; p < bits_batches::n; ++p) {
        if (batch.rows[p] != static_cast<std::int64_t>(row)) continue;
        const float* values = batch.values.data() + p * width;
        if (sum.empty())
          sum.assign(values, values + width);
        else
          for (std::size_t c = 0; c < width; ++c) sum[c] += values[c];
      }
      for (std::size_t c = 0; c < sum.size(); ++c) {
        const std::size_t element = row * width + c;
        auto weight = static_cast<float>(result.weights[element]);
        float field[Fields == 0 ? 1 : Fields] = {};
        for (std::size_t f = 0; f < result.state.size(); ++f) field[f] = result.state[f][element];
        update.apply(weight, sum[c], field);
        result.weights[element] = T(weight);
        for (std::size_t f = 0; f < result.state.size(); ++f) result.state[f][element] = field[f];
      }
    }
  }
  return result;
}

template <class T, class Space, class Exec = exec_space, class Rule, class Path>
void bits_on(const Rule& rule, const bits_batches& batches, std::size_t width,
             const bits_of_training<T>& expected, Path path) {
  CAPTURE(Exec::name(), Space::name, path.name);
  const Exec exec;
  std::vector<T> start;
  for (const float w : batches.start) start.push_back(T(w));
  auto table = make<Space>("weights", bits_batches::rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  for (int step = 1; step <= bits_batches::steps; ++step) {
    const auto& batch = batches.batch[static_cast<std::size_t>(step - 1)];
    using grads_space =
        std::conditional_t<std::is_same_v<Exec, exec_space>, ferry::device_space, ferry::pageable_space>;
    const auto grads = make<grads_space>("grads", bits_batches::n, width, batch.values);
    if (step % 3 == 0)
      ferry::step(exec, rule, table, state, batch.rows, grads, path, ferry::duplicates::assume_unique{})
          .wait();
    else if (step % 3 == 1)
      ferry::step(exec, rule, table, state, ferry::make_plan(exec, batch.rows, bits_batches::rows), grads,
                  path)
          .wait();
    else
      ferry::step(exec, rule, table, state, batch.rows, grads, path).wait();
  }
  CHECK(same_bits(take(table), expected.weights));
  CHECK_FALSE(same_bits(take(table), start));
  for (int f = 0; f < state.fields(); ++f) {
    CAPTURE(state.field_name(f));
    CHECK(same_bits(take(state.field(f)), expected.state[static_cast<std::size_t>(f)]));
  }
}

/// Rows for device or host alone, and rules of each number of fields also on every path: the path chooses where a row's kernel
/// runs, not what it does. Widths: one element, one packet, none of packets, two warps of packets.
template <class T, class Rule, int Fields>
void same_bits_everywhere(const Rule& rule, std::integral_constant<int, Fields>) {
  using namespace ferry::optim;
  constexpr bool on_every_path =
      std::is_same_v<Rule, sgd> || std::is_same_v<Rule, rmsprop> || std::is_same_v<Rule, adam>;
  for (const std::size_t width : {1u, 4u, 33u, 128u}) {
    CAPTURE(Rule::name, width);
    auto random = generator(1600 + width);
    const bits_batches batches(random, width);
    const auto expected = trained_here<T, Rule, Fields>(rule, batches, width);
    if constexpr (on_every_path)
      for_each_path<ferry::mapped_space, ferry::device_space, work::changes>(
          [&](auto path) { bits_on<T, ferry::mapped_space>(rule, batches, width, expected, path); });
    bits_on<T, ferry::device_space>(rule, batches, width, expected, ferry::path::direct{});
    bits_on<T, ferry::pageable_space>(rule, batches, width, expected, ferry::path::staged{});
  }
}

/// On the host backends of a build whose default is a device.
template <class T, class Rule, int Fields>
void same_bits_on_host_backends(const Rule& rule, std::integral_constant<int, Fields>) {
  for (const std::size_t width : {1u, 33u, 128u}) {
    CAPTURE(Rule::name, width);
    auto random = generator(1650 + width);
    const bits_batches batches(random, width);
    const auto expected = trained_here<T, Rule, Fields>(rule, batches, width);
    const ferry::path::direct path;
    bits_on<T, ferry::mapped_space, Kokkos::DefaultHostExecutionSpace>(rule, batches, width, expected, path);
#ifdef KOKKOS_ENABLE_SERIAL
    bits_on<T, ferry::mapped_space, Kokkos::Serial>(rule, batches, width, expected, path);
#endif
#ifdef KOKKOS_ENABLE_THREADS
    bits_on<T, ferry::mapped_space, Kokkos::Threads>(rule, batches, width, expected, path);
#endif
  }
}

template <int Fields>
inline constexpr std::integral_constant<int, Fields> fields{};

// The bits of training by rules that divide by the root of squares, in every space and on every path.

TEST_CASE("adagrad, adadelta, rmsprop and ftrl give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adagrad{.lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.01}, fields<1>);
  same_bits_everywhere<float>(adadelta{.lr = 1.0, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(rmsprop{.lr = 0.01}, fields<1>);
  same_bits_everywhere<float>(rmsprop{.lr = 0.01, .weight_decay = 0.01, .momentum = 0.9, .centered = true},
                              fields<3>);
  same_bits_everywhere<float>(ftrl{.lr = 0.1, .l1 = 0.1, .l2 = 0.05}, fields<2>);
}

// The bits of training by adam and its kin, in every space and on every path.

TEST_CASE("adam, in float and half_t, and adamw give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adam{.lr = 0.1}, fields<2>);
  same_bits_everywhere<float>(adam{.lr = 0.1, .weight_decay = 0.01, .amsgrad = true, .maximize = true},
                              fields<3>);
  same_bits_everywhere<ferry::half_t>(adam{.lr = 0.1}, fields<2>);
  same_bits_everywhere<float>(adamw{.lr = 0.1, .weight_decay = 0.1, .amsgrad = true}, fields<3>);
}

TEST_CASE("adam gives the same bits on every host backend", "[optim][bits]") {
  same_bits_on_host_backends<float>(ferry::optim::adam{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
}

// The bits of training by further rules of two moments, in every space and on every path.

TEST_CASE("adamax, nadam and sparse_adam give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(adamax{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(nadam{.lr = 0.1, .weight_decay = 0.01}, fields<2>);
  same_bits_everywhere<float>(nadam{.lr = 0.1, .weight_decay = 0.01, .decoupled_weight_decay = true},
                              fields<2>);
  same_bits_everywhere<float>(sparse_adam{.lr = 0.1}, fields<2>);
}

// The bits of training by rules with at most one moment, in every space and on every path.

TEST_CASE("sgd, asgd, rprop and lion give the same bits everywhere", "[optim][bits]") {
  using namespace ferry::optim;
  same_bits_everywhere<float>(sgd{.lr = 0.1, .weight_decay = 0.01}, fields<0>);
  same_bits_everywhere<float>(sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .maximize = true}, fields<1>);
  same_bits_everywhere<float>(sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                              fields<1>);
  same_bits_everywhere<float>(asgd{.lr = 0.1, .lambd = 0.01, .t0 = 2.0, .weight_decay = 0.1}, fields<1>);
  same_bits_everywhere<float>(rprop{.lr = 0.01}, fields<2>);
  same_bits_everywhere<float>(lion{.lr = 0.01, .weight_decay = 0.1}, fields<1>);
}

}  // namespace ferry_test::bits_test
