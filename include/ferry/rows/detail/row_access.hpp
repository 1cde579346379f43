// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/profile/path_kind.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Addressers: where the rows of a table lie. A verb is written once, over one of these:
///
///   value_type, memory_space  of the table
///   is_strided                whether row r lies at base + r * stride. Paths that occupy host threads,
///                             searches and atomic additions need it
///   gathers_once<OutSpace>    whether a gather with a plan reads each different row once
///   gathers_apart<Path, Exec, OutSpace>
///                             whether gather_apart<Path, Bounds>(call, batch, out) gathers, not one kernel
///   may_need_host             whether needs_host() says that path::staged gathers
///   path_label<Path>          the name of kernels on this path
///   table()                   the table as an array_ref, for checks, messages and the ticket
///   row_bytes()               bytes that travel for a row
///   require_foreign(verb, operands...)
///                             throws if another operand is memory of this table
///   rows(call)                checks that kernels reach the table, orders the call after writes to it, and
///                             returns the rows for launch_gather: an array_ref, or rows with value_type,
///                             in_units_of and read_in_units
///   places(call, source, n, plan)
///                             the source of n items, whose row(item) is the index of the item's row among
///                             rows(call). `plan`: that of the batch, or null
///   touches<Path>(call, job)  checks and orders, for all arrays of a job that writes
///   located<Path>(call, job, plan), located(call, label, job, source, n)
///                             the job with kernels that find the rows, and the order of its items. The
///                             source is index_rows, of which it reports bad ones before the job's kernel
///                             runs, or consecutive_rows: all rows of the table
///   end_update(call, label, job, n)
///                             the work after the kernels of such a job
///
/// A kind of table specialises is_table_object<Table>, and table_access<Table>, which is constructed by
/// (table, verb) and declares also, most of it by the base rows_of_kernels:
///
///   checked                   the array type by which types are checked
///   added_to                  the same for scatter_add
///   gathered                  the elements of gathered rows
///   extents_of(table)         an array_ref with its extents
///   require<Exec, Chosen, Gathers>()
///                             static_asserts on the policies; Gathers: of gather
///   require_writable()        static_asserts for verbs that write
///   require_decodable<Out>()  if rows are decoded: static_asserts on the elements that they become
///   encodes_rows              whether replace_rows<Chosen, Duplicates>(exec, table, batch, values) scatters
namespace ferry::detail {

template <class Access>
concept RowAccess = requires(const Access& access) {
  typename Access::value_type;
  typename Access::memory_space;
  { Access::is_strided } -> std::convertible_to<bool>;
  {
    access.table()
    } -> std::convertible_to<array_ref<typename Access::value_type, typename Access::memory_space>>;
  { access.row_bytes() } -> std::convertible_to<std::int64_t>;
  requires requires(launch_context<Kokkos::DefaultHostExecutionSpace> & call,
                    const kernels::listed_rows& source, const std::shared_ptr<plan_storage>& plan) {
    typename std::remove_cvref_t<decltype(access.rows(call))>::value_type;
    { access.places(call, source, std::int64_t{}, plan).row(0, true) } -> std::same_as<std::int64_t>;
  };
};

/// The addresser of a kind of table. Not defined for arrays, whose addresser is plain_rows.
template <class Table>
struct table_access;

template <class Table>
concept HasRowAccess = requires {
  typename table_access<std::remove_cvref_t<Table>>::gathered;
};

/// Checks that the rows of a kind of table can become elements of type Out.
template <class Access, class Out>
consteval void require_gathered() {
  if constexpr (requires { Access::template require_decodable<Out>(); })
    Access::template require_decodable<Out>();
  else
    require_convertible<Out, typename Access::gathered>();
}

/// A job whose kernels find the rows, and the order of its items.
template <class Job, class Order>
struct located_job {
  Job job;
  Order order;
};
template <class Job, class Order>
located_job(Job, Order) -> located_job<Job, Order>;

/// The schedule for a plan's sorted rows on path::direct and path::ordered. Over host memory few threads
/// write, because TLB reach limits the device: a step on mapped rows takes three times as long with a full
/// device. Over device memory all threads write at once, because few teams could not saturate it.
template <class, class TableSpace>
auto plan_order([[maybe_unused]] const row_plan& plan) {
  if constexpr (std::is_same_v<TableSpace, device_space>)
    return schedule::flat{};
  else
    return schedule::team_chunks{plan.storage()->unique_count};
}

/// Checks that kernels reach the arrays of a job, and orders the call after other work on them.
template <class Path, class Exec, class Job>
void touch_arrays(launch_context<Exec>& call, const Job& job) {
  job.for_each_array([&](const auto& array) {
    require_direct_reach(call.verb(), call.exec(), array);
    if constexpr (splits_rows<Path>) call.wait_for_host_access(array);  // the host writes as well
    call.touches(array);
  });
}

/// Looks for bad indices in a kernel of its own, so that a later one writes nothing if there is one.
template <class Exec, class Index, class Bounds>
void validate_rows(launch_context<Exec>& call, const std::string& label,
                   const kernels::index_rows<Index, Bounds>& source, std::int64_t n) {
  if constexpr (Bounds::reports)
    launch(call.exec(), call.label_part(label, "validate"), n,
           kernels::resolve_indices<Index, Bounds>{source, nullptr, nullptr, nullptr});
}

template <class Exec>
void validate_rows(launch_context<Exec>&, const std::string&, const kernels::consecutive_rows&,
                   std::int64_t) {}

/// The members that most kinds of tables share.
template <class T, class Space>
struct rows_of_kernels {
  using value_type = T;
  using memory_space = Space;
  using checked = tensor<std::remove_const_t<T>, Space>;
  using added_to = checked;
  using gathered = std::remove_const_t<T>;
  static constexpr bool is_strided = false;
  static constexpr bool encodes_rows = false;
  static constexpr bool may_need_host = false;
  template <class OutSpace>
  static constexpr bool gathers_once = false;
  template <class Path, class Exec, class OutSpace>
  static constexpr bool gathers_apart = false;
  template <class Path>
  static constexpr std::string_view path_label = Path::name;

  /// Gathers: whether the verb is gather.
  template <class Exec, class Chosen, bool Gathers = false>
  static consteval void require() {
    using path_policy = typename Chosen::template get<path_category, path::automatic>;
    static_assert(
        path_policy::chosen_at_run_time || (!by_host_alone<path_policy> && !splits_rows<path_policy>),
        "ferry: kernels alone find the rows of this table: path::direct or path::ordered.");
  }
  static consteval void require_writable() {}
  template <class... Operands>
  static void require_foreign(const char*, const Operands&...) {}
  template <class Exec, class Job>
  static void end_update(launch_context<Exec>&, const std::string&, const Job&, std::int64_t) {}
};

/// Rows of an array: row r at base + r * stride. Array: the array, or a reference to it.
template <class T, class Space, class Array = const array_ref<T, Space>&>
class plain_rows : public rows_of_kernels<T, Space> {
 public:
  static constexpr bool is_strided = true;
  template <class Path, class Exec, class OutSpace>
  static constexpr bool gathers_apart = by_host_alone<Path>;

  explicit plain_rows(Array array) : array_(static_cast<Array&&>(array)) {}

  [[nodiscard]] const array_ref<T, Space>& table() const { return array_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(array_, 1); }

  template <class Exec>
  const array_ref<T, Space>& rows(launch_context<Exec>& call) const {
    require_direct_reach(call.verb(), call.exec(), array_);
    call.reads_from(array_);
    return array_;
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

  /// By the host's threads, out[p] = row of position p.
  template <class Path, class Bounds, class Exec, class Batch, class Out, class OutSpace>
  void gather_apart(launch_context<Exec>& call, const Batch& batch,
                    const array_ref<Out, OutSpace>& out) const {
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, array_, out, positions_of(batch) * row_bytes());
    wait_for_host_access(call, "ferry::gather::staged", array_, out);
    gather_staged(call, array_, rows_for_host<Bounds>(call, batch, array_.rows()).rows, out);
  }

  template <class Path, class Exec, class Job>
  static void touches(launch_context<Exec>& call, const Job& job) {
    touch_arrays<Path>(call, job);
  }
  template <class Path, class Exec, class Job>
  static auto located(launch_context<Exec>&, const Job& job, const row_plan& plan) {
    const auto order = plan_order<Path, Space>(plan);
    return located_job<const Job&, decltype(order)>{job, order};
  }
  template <class Exec, class Job, class Source>
  static auto located(launch_context<Exec>& call, const std::string& label, const Job& job,
                      const Source& source, std::int64_t n) {
    validate_rows(call, label, source, n);
    return located_job<const Job&, schedule::flat>{job, {}};
  }

 private:
  Array array_;
};
template <class T, class Space>
plain_rows(const array_ref<T, Space>&) -> plain_rows<T, Space>;
static_assert(RowAccess<plain_rows<float, device_space>>);

/// An array as a verb takes it, with its elements const if the verb only Reads.
template <bool Reads, class Array>
auto table_of(Array& array) {
  if constexpr (Reads)
    return read_only(make_ref(array));
  else
    return make_ref(array);
}
/// The addresser of an array, with the members of a table_access.
template <class Table, class Array>
struct array_access : plain_rows<typename Array::value_type, typename Array::memory_space, Array> {
  using checked = Table;
  using added_to = Table;
  using gathered = std::remove_const_t<typename Array::value_type>;

  array_access(auto& table, const char*)
      : array_access::plain_rows(table_of<std::is_const_v<typename Array::value_type>>(table)) {}

  template <class Exec, class Chosen, bool = false>
  static consteval void require() {}
  static consteval void require_writable() { require_output<Table>(); }
  static auto extents_of(const auto& table) { return make_ref(table); }
};

/// Tables of all kinds that verbs read, and write.
/// @{
template <class Table>
concept HasRows = (AnArray<Table> || HasRowAccess<Table>);
template <class Table>
concept HasOutputRows = (AnArray<Table> ||
                         (HasRowAccess<Table> && !std::is_const_v<std::remove_reference_t<Table>>));
/// @}

template <class Table, bool Reads>
consteval auto access_for() {
  using plain = std::remove_reference_t<Table>;
  if constexpr (AnArray<Table>)
    return std::type_identity<array_access<Table, decltype(table_of<Reads>(std::declval<plain&>()))>>{};
  else
    return std::type_identity<table_access<plain>>{};
}
/// The addresser of a verb's table, constructed by (table, verb).
template <class Table, bool Reads = false>
using access_to = typename decltype(access_for<Table, Reads>())::type;

}  // namespace ferry::detail
