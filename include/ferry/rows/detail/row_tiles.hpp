#pragma once

#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <cstdint>
#include <type_traits>

/// Which tile a kernel that writes rows works in.
namespace ferry::detail {

/// Calls run with the tile that fits: loops on the host, packets on a device where alignment allows them.
template <bool Host, class Compute, class Run, class Operation, class Value>
void visit_tiles(bool packable, const Run& run, const Operation& operation, const Value* values,
                 std::int64_t stride, std::int64_t width) {
  if constexpr (Host)
    run.template operator()<Compute>(operation, values, stride, width, kernels::host_tile{});
  else if (packable)
    run.template operator()<Compute>(operation, values, stride, width, kernels::packed_tile{});
  else
    run.template operator()<Compute>(operation, values, stride, width, kernels::single_tile{});
}

/// Moves rows of T as opaque units into `to`; MakeOperation turns the units' pointer and stride into the
/// operation.
template <bool Host, class Run, class ToRef, class ValuesRef, class MakeOperation>
void visit_units(const ToRef& to, const ValuesRef& values, const Run& run, const MakeOperation& make) {
  using element = std::remove_cvref_t<decltype(*to.data)>;
  const auto moving = [&]<class Unit>(Unit) {
    const auto into = as_units<Unit>(to);
    const auto from = as_units<Unit>(values);
    using tile = std::conditional_t<Host, kernels::host_tile, kernels::single_tile>;
    run.template operator()<Unit>(make(into.data, into.stride), from.data, from.stride, into.width, tile{});
  };
  if constexpr (!Host)
    if (in_wide_units(to, values)) return moving(kernels::opaque16{});
  moving(unit_of<element>{});
}

}  // namespace ferry::detail
