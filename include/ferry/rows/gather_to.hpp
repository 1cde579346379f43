// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/rows/detail/fill_elements.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/future.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Sets all bytes of an array to zero. The ticket keeps the memory in case the next verb throws.
template <class Exec, class T, class Space>
ticket clear(const Exec& exec, const array_ref<T, Space>& array) {
  using byte = unsigned char;
  using unit = std::conditional_t<NumberElement<T>, T, byte>;
  constexpr auto units = static_cast<std::int64_t>(sizeof(T) / sizeof(unit));
  const std::string label = "ferry::gather::clear";
  const fill_target<unit> target{reinterpret_cast<unit*>(array.data), array.rows(), array.width() * units,
                                 array.row_stride() * units};
  const kernels::constant_value<unit> zero{unit{}};
  launch_context<Exec> call(exec, "gather");
  call.writes_to(array);
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    launch_fill(exec, label, target, zero);
  } else {
    const auto host = host_side(exec);
    launch_fill(host, label, target, zero);
    host.fence(label);
  }
  return call.finish();
}

/// Gathers into a new tensor of elements of type T.
template <class T, class Space, class Exec, class Table, class Indices, class... Policies>
future<tensor<T, Space>> gather_into_new(const Exec& exec, const Table& table, const Indices& indices,
                                         Policies... policies) {
  using chosen = chosen_policies<Policies...>;
  require_execution_space<Exec>();
  using access_type = access_to<Table, true>;
  require_rows<typename access_type::checked>();
  require_indices<Indices>();
  require_convertible<T, typename access_type::gathered>();
  const auto shape = access_type::extents_of(table);
  std::int64_t positions = 0;
  bool has_holes =
      std::is_same_v<typename chosen::template get<bounds_category, bounds::check>, bounds::skip>;
  if constexpr (is_plan<Indices>) {
    positions = indices.positions();
    has_holes = indices.storage() != nullptr && indices.storage()->bounds == bounds::skip::name;
  } else {
    positions = index_ref(indices).rows();
  }
  if (execution_backend<Exec>::capturing(exec))
    throw invalid_argument(
        "ferry::gather: the instance is being captured into a graph, but a new tensor would be made once only; gather into a batch of yours");
  auto rows =
      tensor_like<T, Space>(shape, memory_home(exec), positions, std::string(shape.label) + "::gathered");
  ticket cleared;
  if (has_holes) cleared = clear(exec, make_ref(rows));
  ticket work = gather(exec, table, indices, rows, policies...);
  cleared.drop();
  return {std::move(work), std::move(rows)};
}

}  // namespace detail

/// The rows table[indices[p]] as a new tensor in Space. get() of the future returns it once the work has
/// ended.
///
///   auto rows = ferry::gather<ferry::pinned_space>(exec, table, indices);
///   ...
///   const auto batch = rows.get();
///   auto floats = ferry::gather<ferry::device_space, float>(exec, table_of_half, indices);
///
///   Space, T  the memory space, and if given the element type to which the elements are converted
///   exec      the execution space instance that the gather is enqueued on
///   table     rows x width in any memory space, or a rowwise_int8_tensor, whose rows are converted to float
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   policies  as for the gather into an existing batch
///
/// The tensor has one row per index, the extents of the table's rows and without T their element type.
/// Positions without a row (bounds::skip) are zero. Table and indices must live until the work has ended, see
/// ferry::future. Throws as the gather into an existing batch; bad_alloc; invalid_argument if `exec` is being
/// captured into a graph. get() throws out_of_range under bounds::check.
template <MemorySpace Space, class T = void, class Exec, class Table, class Indices, class... Policies>
  requires((std::is_void_v<T> || Element<T>)&&(
      !detail::is_table_object<Table> ||
      detail::HasRowAccess<Table>)&&detail::Fits<detail::gather_new_arguments, const Exec&, const Table&,
                                                 const Indices&, Policies...>)
[[nodiscard("the rows are only to be had from the future that this returns")]] auto gather(
    const Exec& exec, const Table& table, const Indices& indices, Policies... policies) {
  using element = std::conditional_t<std::is_void_v<T>, typename detail::access_to<Table, true>::gathered, T>;
  return detail::gather_into_new<element, Space>(exec, table, indices, policies...);
}

}  // namespace ferry
