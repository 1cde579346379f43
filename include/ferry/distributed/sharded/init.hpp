// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// A generator for a shard: elements get the values of their positions in the whole table.
template <class Generator>
struct placed_value {
  static constexpr bool is_by_position = false;
  static constexpr int neighbours = [] {
    if constexpr (requires { Generator::neighbours; }) return Generator::neighbours;
    return 0;
  }();
  Generator generator;
  global_rows rows;
  detail::fast_divisor width;

  KOKKOS_FUNCTION auto operator()(std::int64_t row, std::int64_t column, std::int64_t) const {
    const std::int64_t whole = rows(row);
    return generator(whole, column, whole * width.divisor() + column);
  }
  /// For neighbours of one row.
  KOKKOS_FUNCTION auto draw(std::int64_t number) const requires(neighbours > 0) {
    const std::int64_t position = number * neighbours;
    const std::int64_t row = width.quotient(position);
    return generator.draw((rows(row) * width.divisor() + position - row * width.divisor()) / neighbours);
  }
  template <class T>
  void run(std::int64_t row, std::int64_t column, std::int64_t, std::int64_t count, T* target) const
      requires(neighbours > 0) {
    const std::int64_t whole = rows(row);
    generator.run(whole, column, whole * width.divisor() + column, count, target);
  }
};

}  // namespace ferry::kernels

namespace ferry {

namespace detail {

/// Fills the shards. `check(array)` throws for bad arguments, `generator()` makes the values of all rows.
/// `agreed` are the arguments that must be the same on all ranks, and so must the type of Function.
template <class Function = void, class Exec, class T, class Space, class Spread, class Check, class Generator,
          class... Agreed>
void init_sharded(const char* name, const Exec& exec, sharded_table<T, Space, Spread>& table,
                  const Check& check, const Generator& generator, const Agreed&... agreed) {
  require_execution_space<Exec>();
  require_reach<Exec, tensor<T, Space>>();
  auto note = note_of<Function>(name, table);
  (note.add_hidden(note_part::values, agreed), ...);
  collective call(table.comm(), note);
  call.guarded([&] {
    tensor<T, Space> none(table.label(), memory_home(exec), 0, table.width());
    check(none);
    call.agree();  // other ranks may read the shards by path::peer until they come here
    for (int r = call.first(); r < call.last(); ++r) {
      const auto instance = shard_instance(table.comm(), r, exec);
      const auto values = generator();
      using generated = std::remove_const_t<decltype(values)>;
      if constexpr (std::is_same_v<generated, kernels::constant_value<T>>)
        generate(instance, joined("ferry::", name), make_ref(table.shard(r)), values);
      else
        generate(instance, joined("ferry::", name), make_ref(table.shard(r)),
                 kernels::placed_value<generated>{values, row_numbers(table, r),
                                                  fast_divisor(static_cast<std::int64_t>(table.width()))});
    }
    call.agree();
    call.close();
  });
}

template <class Exec>
consteval void refuse_quantized_init() {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: init fills tables of numbers; initialise a sharded_table of them, and quantize it into the sharded_quantized_table.");
}

}  // namespace detail

/// Initial values for a sharded table, collective: the same bits as those of an ordinary table, for every
/// number of ranks and every sharding. All ranks pass the same arguments. See the functions for ordinary
/// tables; peer_error and protocol_error as for every verb of a sharded_table.
namespace init {

/// Every element = 0.
template <class Exec, class T, class Space, class Spread>
void zeros(const Exec& exec, sharded_table<T, Space, Spread>& table) {
  ferry::detail::init_sharded(
      "init::zeros", exec, table, [](auto&) {}, [] { return kernels::constant_value<T>{T{}}; });
}

/// Every element = `value`.
template <class Exec, class T, class Space, class Spread, class Value>
void constant(const Exec& exec, sharded_table<T, Space, Spread>& table, const Value& value) {
  ferry::detail::init_sharded(
      "init::constant", exec, table, [&](auto& none) { constant(exec, none, value); },
      [&] { return kernels::constant_value<T>{convert<T>(value)}; }, convert<T>(value));
}

/// Uniform numbers of [low, high).
template <class Exec, class T, class Space, class Spread>
void uniform(const Exec& exec, sharded_table<T, Space, Spread>& table, double low, double high,
             std::uint64_t seed) {
  ferry::detail::init_sharded(
      "init::uniform", exec, table, [&](auto& none) { uniform(exec, none, low, high, seed); },
      [&] { return ferry::detail::uniform_generator<T>(low, high, seed); }, low, high, seed);
}

/// Normal numbers with the given mean and standard deviation.
template <class Exec, class T, class Space, class Spread>
void normal(const Exec& exec, sharded_table<T, Space, Spread>& table, double mean, double deviation,
            std::uint64_t seed) {
  ferry::detail::init_sharded(
      "init::normal", exec, table, [&](auto& none) { normal(exec, none, mean, deviation, seed); },
      [&] { return ferry::detail::normal_generator<T>(mean, deviation, seed); }, mean, deviation, seed);
}

/// table(row, column) = function(row, column), for rows of the whole table.
template <class Exec, class T, class Space, class Spread, class Function>
void custom(const Exec& exec, sharded_table<T, Space, Spread>& table, const Function& function) {
  static_assert(std::is_invocable_v<const Function&, std::int64_t, std::int64_t>,
                "ferry: init::custom needs a function of (row, column).");
  ferry::detail::init_sharded<Function>(
      "init::custom", exec, table, [](auto&) {},
      [&] { return kernels::custom_value<T, Function>{function}; });
}

/// Refuse quantized rows. Do not compile.
/// @{
template <class Exec, class Q, class Space, class ScaleSpace, class Spread>
void zeros(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&) {
  ferry::detail::refuse_quantized_init<Exec>();
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class Value>
void constant(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&, const Value&) {
  ferry::detail::refuse_quantized_init<Exec>();
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread>
void uniform(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&, double, double,
             std::uint64_t) {
  ferry::detail::refuse_quantized_init<Exec>();
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread>
void normal(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&, double, double,
            std::uint64_t) {
  ferry::detail::refuse_quantized_init<Exec>();
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class Function>
void custom(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&, const Function&) {
  ferry::detail::refuse_quantized_init<Exec>();
}
/// @}

}  // namespace init
}  // namespace ferry
