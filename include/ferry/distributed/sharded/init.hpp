// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/placed_value.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry {

namespace detail {

/// Fills the shards of the ranks that this thread acts for. `check` throws for bad arguments; `agreed` are
/// those that must be the same on all ranks, and so must the type of Function.
template <class Function = void, class Exec, class T, class Space, class Spread, class Check, class Make,
          class... Agreed>
void init_sharded(const char* verb, const Exec& exec, sharded_table<T, Space, Spread>& table,
                  const Check& check, const Make& generator, const Agreed&... agreed) {
  require_execution_space<Exec>();
  require_reach<Exec, tensor<T, Space>>();
  auto note = note_of<Function>(verb, table);
  (note.add_hidden(note_part::values, agreed), ...);
  collective call(table.comm(), note);
  call.guarded([&] {
    tensor<T, Space> none(table.label(), memory_home(exec), 0, table.width());
    check(none);
    call.agree();  // other ranks may read the shards by path::peer until they come here
    for (int r = call.first(); r < call.last(); ++r) {
      const auto instance = shard_instance(table.comm(), r, exec);
      const std::string label = std::string("ferry::").append(verb);
      const auto values = generator();
      if constexpr (std::is_same_v<decltype(values), const kernels::constant_value<T>>)
        generate(instance, label, make_ref(table.shard(r)), values);
      else
        generate(instance, label, make_ref(table.shard(r)),
                 kernels::placed_value<decltype(generator())>{
                     values,
                     table.sharding().global_rows(r, static_cast<std::int64_t>(table.rows()), call.ranks()),
                     fast_divisor(static_cast<std::int64_t>(table.width()))});
    }
    call.agree();
    call.close();
  });
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

}  // namespace init
}  // namespace ferry
