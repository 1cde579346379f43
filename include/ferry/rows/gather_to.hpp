#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/tensor_like.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// A table's rows as numbers, and its extents. An 8-bit table has its own.
template <class Table>
struct gathered_rows {
  using table_for_checks = Table;
  using element = std::remove_const_t<typename traits_of<Table>::value_type>;
  static auto extents_of(const Table& table) { return make_ref(table); }
};
/// All bytes zero, whatever the elements are. The ticket keeps the memory until then, should what follows
/// throw.
template <class Exec, class T, class Space>
ticket clear(const Exec& exec, const array_ref<T, Space>& array) {
  using byte = unsigned char;
  using unit = std::conditional_t<NumberElement<T>, T, byte>;
  constexpr auto units = static_cast<std::int64_t>(sizeof(T) / sizeof(unit));
  const char* label = "ferry::gather::clear";
  const kernels::fill_elements<unit, kernels::constant_value<unit>> kernel{
      reinterpret_cast<unit*>(array.data), array.row_stride() * units, fast_divisor(array.width() * units),
      kernels::constant_value<unit>{unit{}}};
  launch_context<Exec> of(exec, "gather");
  of.writes_to(array);
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    launch(exec, label, array.size() * units, kernel);
  } else {
    const auto host = host_side(exec);
    launch(host, label, array.size() * units, kernel);
    host.fence(label);
  }
  return of.finish();
}

/// The gather into a new tensor of elements of type T.
template <class T, class Space, class Exec, class Table, class Indices, class... Policies>
future<tensor<T, Space>> gather_into_new(const Exec& exec, const Table& table, const Indices& indices,
                                         Policies... asked) {
  using chosen = chosen_policies<Policies...>;
  require_execution_space<Exec>();
  using rows_of_table = gathered_rows<Table>;
  require_rows<typename rows_of_table::table_for_checks>();
  require_indices<Indices>();
  require_convertible<T, typename rows_of_table::element>();
  const auto from = rows_of_table::extents_of(table);
  std::int64_t positions = 0;
  bool holes = std::is_same_v<typename chosen::template get<bounds_category, bounds::check>, bounds::skip>;
  if constexpr (is_plan<Indices>) {
    positions = indices.positions();
    holes = indices.storage() != nullptr && indices.storage()->bounds == bounds::skip::name;
  } else {
    positions = make_ref(indices).rows();
  }
  if (execution_backend<Exec>::capturing(exec))
    throw invalid_argument(
        "ferry::gather: the instance is being captured into a graph, but a new tensor would be made once only; gather into a batch of yours");
  auto rows = tensor_like<T, Space>(from, positions, std::string(from.label) + "::gathered");
  ticket cleared;
  if (holes) cleared = clear(exec, make_ref(rows));
  ticket work = gather(exec, table, indices, rows, asked...);
  cleared.detach();
  return {std::move(work), std::move(rows)};
}

}  // namespace detail

/// The rows table[indices[p]] as a new tensor in Space, handed out by get() of the future when they have
/// arrived:
///
///   auto rows = ferry::gather<ferry::pinned_space>(exec, table, indices);
///   ...
///   const auto batch = rows.get();
///
///   table    rows x width, any memory space, or a rowwise_int8_tensor, whose rows arrive as floats
///   indices  rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   policies as for the gather into a batch of the caller's
///
/// The tensor has a row for each index, the table's element type and its extents behind the first. Positions
/// without a row (bounds::skip) are zero. Table and indices must live until the future says that the work has
/// ended. Throws as the other gather, and bad_alloc; get() throws out_of_range under bounds::check.
template <MemorySpace Space, class Exec, class Table, class Indices, class... Policies>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_table<Table>(),
                            detail::flaw_of_indices<Indices>()) == detail::flaw::none)
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const Table& table, const Indices& indices, Policies... asked) {
  using element = typename detail::gathered_rows<Table>::element;
  return detail::gather_into_new<element, Space>(exec, table, indices, asked...);
}

/// The same with the elements converted to T on the way, as the gather into a batch of T does it:
///
///   auto rows = ferry::gather<ferry::device_space, float>(exec, table_of_half, indices);
template <MemorySpace Space, Element T, class Exec, class Table, class Indices, class... Policies>
  requires(detail::first_of(detail::flaw_of_execution_space<Exec>(), detail::flaw_of_table<Table>(),
                            detail::flaw_of_indices<Indices>()) == detail::flaw::none)
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const Table& table, const Indices& indices, Policies... asked) {
  return detail::gather_into_new<T, Space>(exec, table, indices, asked...);
}

}  // namespace ferry
