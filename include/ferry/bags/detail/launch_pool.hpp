// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_terms.hpp>
#include <ferry/bags/detail/pool_long_bags.hpp>
#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>

/// The launch of pool_rows, for one table of one batch.
namespace ferry::detail {

template <class Table, class Weight, class Out>
consteval auto pooling_in() {
  using table = std::remove_const_t<Table>;
  using weight = std::remove_const_t<Weight>;
  if constexpr (std::is_same_v<table, double> || std::is_same_v<weight, double> ||
                std::is_same_v<Out, double> || (std::is_integral_v<table> && !std::is_void_v<weight>))
    return std::type_identity<double>{};
  else if constexpr (std::is_integral_v<table>)
    return std::type_identity<accumulation_t<table>>{};
  else
    return std::type_identity<float>{};
}
/// The type that rows are pooled in: double if any operand is double, or integers have weights; 64 bits for
/// integers; else float.
template <class Table, class Weight, class Out>
using pooling_type = typename decltype(pooling_in<Table, Weight, Out>())::type;

/// The operands of one call, with all pointers ready for kernels of one side.
template <class Rows, class Source, class Offset, class Weight, class Chosen>
struct pooling_inputs {
  const Rows& rows;
  Source source;
  kernels::bag_list<Offset> bags;
  const Weight* weights;
  Chosen* chosen;
  std::int64_t chosen_stride;
  bool strict;
  bool has_rows;  ///< true if the table has any
};
template <class Rows, class Source, class Offset, class Weight, class Chosen>
pooling_inputs(const Rows&, Source, kernels::bag_list<Offset>, const Weight*, Chosen*, std::int64_t, bool,
               bool) -> pooling_inputs<Rows, Source, Offset, Weight, Chosen>;

/// Threads below which bags are too few for the execution space.
template <class Exec>
std::int64_t pooling_threads(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return concurrency_of(exec) > 1 ? 2 * concurrency_of(exec) : 0;
  else
    return execution_backend<Exec>::tuning(exec).threads_that_pool;
}

/// Positions from which on a bag is listed for the launch that shares long ones; 0 if there is no such
/// launch. It pays if bags are long, and too few to occupy `at_once` threads, of which one pools a tile. It
/// also pays in batches of `large` positions, in which a launch more does not matter: a long bag among short
/// ones would take longer than all others. There a bag of 1/256 of the batch ends before the others do.
template <class Offset>
std::int64_t long_bag_length(const kernels::bag_list<Offset>& bags, std::int64_t tiles, std::int64_t at_once,
                             std::int64_t large) {
  constexpr std::int64_t least = kernels::long_bags::least;
  if (bags.bags == 0 || bags.positions < least || at_once == 0) return 0;
  const bool differ = bags.offsets != nullptr;
  // Bags of a quarter of that length on average: some of them are long, if their lengths differ at all.
  const bool some_long = differ ? bags.positions / bags.bags >= least / 4 : bags.hotness >= least;
  if (some_long && bags.bags * tiles < at_once) return least;
  return differ && bags.positions >= large ? std::max(least, bags.positions / 256) : 0;
}

/// The positions of a batch that is large for long_bag_length: on a device 24 rows for each thread.
template <class Exec>
std::int64_t large_batch(std::int64_t tiles, std::int64_t at_once) {
  if constexpr (is_host_exec<Exec>)
    return std::int64_t{1} << 16;
  else
    return 24 * at_once / tiles;
}

/// Pools a batch by two launches, of which the second one shares the bags of `least` and more positions
/// between all threads. `exec` is that of the call, or the host's for a call on a device.
template <class Exec, class CallExec, class Pool>
void launch_with_list(launch_context<CallExec>& call, const Exec& exec, const std::string& label, Pool& pool,
                      std::int64_t tiles, std::int64_t least) {
  using number = typename Pool::compute_type;
  constexpr bool on_host = is_host_exec<Exec>, for_device = !std::is_same_v<Exec, CallExec>;
  const auto memory = [&]<class T>(std::type_identity<T>, std::int64_t count) {
    if constexpr (for_device)
      return call.template pinned<T>(count);
    else
      return call.template scratch<T>(count);
  };
  const std::int64_t width = pool.terms.width, positions = pool.bags.positions;
  const bool packed = pool.packed || pool.wide;
  const std::int64_t long_tiles = on_host ? 1 : packed ? width / kernels::packed_tile::elements : width;
  const std::string& long_label = call.label_part(label, "long_bags");
  auto& list = pool.list;
  list.least = least;
  list.most_bags = std::min(pool.bags.bags, positions / least);
  list.most_pieces =
      std::min(positions / kernels::sum_pieces::least, list.most_bags * kernels::sum_pieces::greatest_count);
  list.tiles = long_tiles;
  list.bags = memory(std::type_identity<kernels::long_bag>{}, list.most_bags);
  list.arrivals = memory(std::type_identity<kernels::piece_arrivals>{}, list.most_bags * long_tiles);
  auto* const sums = memory(std::type_identity<number>{}, list.most_pieces * width);
  if constexpr (for_device)
    list.state = new (memory(std::type_identity<long_bag_counts>{}, 1)) long_bag_counts{};
  else
    list.state = &call.report().findings->long_bags;
  // The second kernel has 128 registers: fewer threads at once.
  const std::int64_t threads = on_host ? list.most_pieces : pooling_threads(exec) * 2 / 5;
  try {
    launch(exec, label, schedule::each{}, pool.bags.bags, tiles, pool);
    launch(exec, long_label, schedule::each{}, threads, 1,
           kernels::pool_long_bags<number, Pool>{pool, sums, fast_divisor(long_tiles), packed, threads});
  } catch (...) {
    // Without the second launch the bags would stay in the list: it is cleaned before its next use.
    if constexpr (!for_device) *static_cast<volatile unsigned int*>(call.report().raised) = 1U;
    throw;
  }
}

template <class Pooling, class Exec, class Rows, class Source, class Offset, class Weight, class Chosen,
          class Out, class OutSpace, class CallExec>
void launch_pool(launch_context<CallExec>& call, const Exec& exec, const std::string& label,
                 const pooling_inputs<Rows, Source, Offset, Weight, Chosen>& inputs,
                 const array_ref<Out, OutSpace>& out, std::int64_t* changed) {
  const auto& rows = pooled_rows(inputs.rows);
  using element = std::conditional_t<CodedRows<Rows>, float, typename Rows::value_type>;
  using number = exact_number<Exec, pooling_type<element, Weight, Out>>;
  const auto operands = pooling_operands_of(inputs.rows, inputs.source);
  using kernel = kernels::pool_rows<number, Pooling, decltype(operands.table), decltype(operands.source),
                                    Offset, std::remove_const_t<Weight>, Out, Chosen>;
  const bool packed = in_packets<kernels::packed_tile::elements>(rows, out);
  bool wide = false;
  if constexpr (kernel::has_wide_tiles) wide = in_packets<kernels::wide_packed_tile::elements>(rows, out);
  const std::int64_t tiles = out.width() / (wide     ? kernels::wide_packed_tile::elements
                                            : packed ? kernels::packed_tile::elements
                                                     : 1);
  kernel pool{{operands.table, operands.source, inputs.weights, out.width(), inputs.bags.positions},
              inputs.bags,
              out.data,
              out.row_stride(),
              inputs.chosen,
              inputs.chosen_stride,
              fast_divisor(tiles),
              packed,
              wide,
              inputs.strict,
              inputs.has_rows,
              changed};
  pool.short_length =
      inputs.has_rows && changed == nullptr && pool.terms.allows_few() ? kernels::long_bags::least : 0;
  const std::int64_t threads_of_bag = is_host_exec<Exec> ? 1 : tiles;
  if constexpr (!Pooling::selects) {
    const std::int64_t at_once = pooling_threads(exec);
    const std::int64_t least = inputs.has_rows ? long_bag_length(inputs.bags, threads_of_bag, at_once,
                                                                 large_batch<Exec>(tiles, at_once))
                                               : 0;
    if (least != 0) return launch_with_list(call, exec, label, pool, threads_of_bag, least);
  }
  launch(exec, label, schedule::each{}, inputs.bags.bags, threads_of_bag, pool);
}

}  // namespace ferry::detail
