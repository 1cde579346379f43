// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/distributed/sharded/detail/coded_shards.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/gather.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

/// Gathers from sharded quantized tables: codes and scales travel, and the rank that asks decodes them.
namespace ferry::detail {

/// Reads the rows of a shard of codes, or of scales, by Path.
template <class Path, class Part>
struct part_reader {
  const Part& part;

  template <class Call, class Rows, class Out>
  void operator()(const Call& call, int rank, const Rows& rows, const Out& out) const {
    gather(call.instance(rank), part.shard(rank), rows, out, Path{}, bounds::unchecked{}).join();
  }
};
/// The policies by which rows of both are read: the user's path is that of the codes.
template <class Chosen, class Exec>
struct coded_reader {
  template <class Part>
  static auto of_codes(const Part& part) {
    return part_reader<shard_read_path_t<Chosen, Exec, typename Part::memory_space>, Part>{part};
  }
  template <class Part>
  static auto of_scales(const Part& part) {
    return part_reader<buffer_path<Exec, typename Part::memory_space>, Part>{part};
  }
};

template <class Q, class Space, class ScaleSpace, class Spread>
struct sharded_kind<sharded_quantized_table<Q, Space, ScaleSpace, Spread>> {
  using wired = typename Q::code_type;
  using gathered = float;
  template <class Wired, class Home>
  using arrived = quantized_tensor<Q, Home, Home>;
  template <class Chosen, class Exec>
  using reader = coded_reader<Chosen, Exec>;
  template <class S>
  static constexpr bool lies_in = std::is_same_v<S, Space> || std::is_same_v<S, ScaleSpace>;

  template <class Out>
  static consteval void require_output() {
    require_quantizable<Out>();
  }
  template <class Table, class Use>
  static void for_each_part(Table& table, const Use& use) {
    use(table.stored());
    if constexpr (has_scale_array<Q>) use(table.scales());
  }
};

template <class Verb, class Reader, class Q, class Home>
void fetch_rows(Verb& verb, const Reader& reader, quantized_tensor<Q, Home, Home>& arrived) {
  const auto& table = verb.table;
  const auto& codes = table.stored();
  const auto columns = static_cast<std::int64_t>(codes.width());
  arrived = quantized_tensor<Q, Home, Home>(table.label(), 0, table.width());
  auto rows = verb.template fetch<Home, typename Q::code_type>(reader.of_codes(codes), columns);
  if constexpr (Q::in_records) {
    arrived.records() = std::move(rows);
  } else {
    arrived.codes() = std::move(rows);
    if constexpr (has_scales<Q>)
      arrived.scales() = verb.template fetch<Home, typename Q::scale_type>(
          reader.of_scales(table.scales()), static_cast<std::int64_t>(table.blocks()));
    if constexpr (Q::has_tensor_scale) arrived.set_scale(table.scale());
  }
}

template <class Exec, class Wire, class Q, class Home, class Out, class OutSpace>
void place_by_route(const Exec& exec, const row_route<Wire>& route,
                    const quantized_tensor<Q, Home, Home>& arrived, const array_ref<Out, OutSpace>& out) {
  const auto slots = slots_of(route);
  gather(exec, arrived, slots, out, bounds::skip{}).join();
}

}  // namespace ferry::detail
