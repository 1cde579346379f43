// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/step_kit.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

/// Training whose bits must be those of the rule applied in the calling thread, one float after the other.
namespace ferry_test {

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

/// On every path, and where device and host have the rows for themselves. Widths: one element, one packet, none of
/// packets, two warps of packets.
template <class T, class Rule, int Fields>
void same_bits_everywhere(const Rule& rule, std::integral_constant<int, Fields>) {
  for (const std::size_t width : {1u, 4u, 33u, 128u}) {
    CAPTURE(Rule::name, width);
    auto random = generator(1600 + width);
    const bits_batches batches(random, width);
    const auto expected = trained_here<T, Rule, Fields>(rule, batches, width);
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

}  // namespace ferry_test
