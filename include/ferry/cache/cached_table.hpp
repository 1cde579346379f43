// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/make_cache.hpp>
#include <ferry/cache/statistics.hpp>
#include <ferry/concepts/argument.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/runtime/detail/argument_kinds.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The sentences for arguments of which no cached_table can be made.
namespace ferry::detail {

/// True if a table may have a cache.
template <class Table>
inline constexpr bool is_cacheable = holds_elements<Table>() || is_quantized<std::remove_cv_t<Table>> ||
                                     (is_records<std::remove_cv_t<Table>> &&
                                      !is_table_object<std::remove_cv_t<Table>>);

/// Stands for the table.
struct refused_table {};

/// True unless the arguments are a table in a variable and a policy.
template <class Table, class Policy = int, class... Rest>
consteval bool is_refused_cache() {
  if constexpr (is_table_object<std::remove_cvref_t<Table>>)
    return !std::is_same_v<Policy, int> || sizeof...(Rest) != 0;  // else a move
  else
    return !(std::is_lvalue_reference_v<Table> && is_cacheable<std::remove_reference_t<Table>> &&
             CachePolicy<std::remove_cvref_t<Policy>> && sizeof...(Rest) == 0);
}

/// Fails with a sentence.
template <class Table, class Policy = refused_table, class...>
consteval void refuse_cached_table() {
  constexpr bool fits = is_cacheable<std::remove_reference_t<Table>>,
                 is_variable = std::is_lvalue_reference_v<Table>,
                 is_chosen = CachePolicy<std::remove_cvref_t<Policy>>;
  static_assert(
      fits,
      "ferry: a cached_table is made of a table in host memory: a ferry::tensor, a table over a file, a quantized_tensor or optim::records. A sharded_table or another cached_table has no cache.");
  static_assert(
      !fits || is_variable,
      "ferry: a cached_table writes changes back to its table, so the table can't be a temporary; keep it in a variable that outlives the cache.");
  static_assert(
      !fits || !is_variable || is_chosen,
      "ferry: the second argument of a cached_table says which rows are cached: ferry::cache::frequency{.rows = 1000} say, cache::fixed, cache::first, or a CachePolicy of yours.");
  static_assert(
      !fits || !is_variable || !is_chosen,
      "ferry: a cached_table is made of a table and a policy; it has one kind of directory, so leave the third argument out.");
}

}  // namespace ferry::detail

namespace ferry {

namespace detail {

template <class Exec, class Cached, class Rows, class... Policies>
ticket prefetch_rows(const Exec& exec, const Cached& table, const Rows& rows, Policies...);

template <class Policy>
inline constexpr bool is_resizable = requires(const Policy& policy) {
  { policy.resized(std::int64_t{}) } -> std::same_as<Policy>;
};

}  // namespace detail

/// Hot rows in device memory, in front of a table in host memory. Verbs on rows take it in place of the table
/// and give the same bits. Move-only.
///
///   ferry::cached_table hot(table, ferry::cache::frequency{.rows = n, .refresh = 64});
///   ferry::gather(exec, hot, indices, batch).wait();
///
///   Table      a ferry::tensor in mapped_space, pinned_space or pageable_space, of any element type, a table
///              over a file, which verbs only read, or a
///              quantized_tensor or optim::records there. Of records the weights are the table, and whole
///              records are cached. Of codes and scales that are arrays gather, gather_unique, gather_bags,
///              scatter and step take the cache: codes are cached, and scales if they lie in host memory
///   Policy     which rows are cached: cache::frequency, cache::fixed, cache::first, or your own CachePolicy
///
/// Between two verbs rows are exchanged, never within one. Optimizer state in host memory is cached together
/// with its rows from the first step on.
///
/// The table belongs to the cache until the latter is destroyed: verbs that write to it throw
/// invalid_argument, and so do verbs that read it while cached rows are newer, up to the next flush(). The
/// same holds for state. Code that uses their memory itself must flush() before and wait. The tensor may be
/// moved; if it is destroyed first, changes of cached rows are lost with it.
///
/// All verbs on one cached_table are in one order, also on different instances. Several threads may use it at
/// the same time.
template <class Table, CachePolicy Policy>
class cached_table {
  using traits = detail::backing_table<std::remove_const_t<Table>>;

 public:
  using table_type = Table;                                      ///< the backing table
  using policy_type = Policy;                                    ///< which rows are cached
  using value_type = typename traits::value_type;                ///< its elements
  using memory_space = typename traits::memory_space;            ///< where it lies
  using ref_type = detail::array_ref<value_type, memory_space>;  ///< the table as verbs see it

  static_assert(!std::is_const_v<Table>,
                "ferry: a cached_table writes changes back, so its table must not be const.");
  static_assert(
      memory_space::is_host_accessible,
      "ferry: a cached_table keeps rows of a table in host memory in device memory; a table in device_space needs none.");

  /// Puts a cache in front of `table`. Blocks until it is ready. Throws invalid_argument for options that do
  /// not fit, for a quantized table that the device does not reach (pageable_space on most machines) and for
  /// one that has a cached_table, also for its scales alone; out_of_range for rows that are not in the table;
  /// bad_alloc, budget_exceeded.
  cached_table(Table& table, Policy policy) requires detail::is_cacheable<Table>
      : policy_(std::move(policy)),
        table_(detail::backing_ref(table)),
        state_(table),
        core_(traits::cache(table, [this](const auto& array, const auto&... more) {
          return detail::make_cache<detail::is_quantized<Table>>(array, traits::row_bytes(table_), policy_,
                                                                 more...);
        })) {
    table_.accesses.reset();
  }
  cached_table(const cached_table&) = delete;
  cached_table& operator=(const cached_table&) = delete;
  /// Takes the cache of `source`, which can only be destroyed or assigned to afterwards.
  cached_table(cached_table&& source) noexcept = default;
  /// Ends the own cache as the destructor does, then takes that of `source`.
  cached_table& operator=(cached_table&& source) noexcept {
    if (this == &source) return *this;
    end();
    policy_ = std::move(source.policy_);
    table_ = std::move(source.table_);
    state_ = std::move(source.state_);
    core_ = std::move(source.core_);
    return *this;
  }
  /// Writes all changes to the table and waits for all verbs in flight. Prints errors to stderr. After
  /// Kokkos::finalize changes are lost.
  ~cached_table() { end(); }

  /// Rows of the table.
  [[nodiscard]] std::size_t rows() const noexcept { return static_cast<std::size_t>(table_.rows()); }
  /// Elements of a row.
  [[nodiscard]] std::size_t width() const noexcept { return static_cast<std::size_t>(table_.width()); }
  /// Extent i of the table, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i < table_.rank ? static_cast<std::size_t>(table_.extents[i]) : 1;
  }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return table_.rank; }
  /// Elements of the table.
  [[nodiscard]] std::size_t size() const noexcept { return rows() * width(); }
  /// The table's label.
  [[nodiscard]] std::string label() const { return std::string(table_.label); }
  /// The most rows that are cached at a time.
  [[nodiscard]] std::size_t slots() const { return detail::cached_slots(core()); }
  /// Bytes of device memory: cached rows of table and state, directory, counts.
  [[nodiscard]] std::size_t bytes() const { return detail::cache_bytes(core()); }
  /// The counts of the cache so far. Waits for the verbs in flight. Launches of graphs must have ended.
  [[nodiscard]] cache::statistics statistics() const { return detail::read_statistics(core()); }

  /// Enqueues on `exec` that all changes are written to the table and to state. The cached rows stay. Verbs
  /// may then read the table itself; host code after the ticket's wait().
  template <ExecutionSpace Exec>
  [[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket flush(
      const Exec& exec) {
    return detail::flush_cache(exec, core());
  }

  /// flush(exec), then the table for verbs that read it; of 8-bit rows the records.
  template <ExecutionSpace Exec>
  [[nodiscard]] detail::array_ref<const value_type, memory_space> table(const Exec& exec) {
    flush(exec).drop();
    return detail::read_only(whole());
  }

  /// Caches at most `rows` rows from now on. Writes all changes to the table, keeps the counts, and chooses
  /// the rows anew. Blocks. If it throws bad_alloc or budget_exceeded, nothing has changed.
  template <std::integral Rows>
  void resize(Rows rows) {
    static_assert(
        detail::is_resizable<Policy>,
        "ferry: the rows of this cache policy are listed one by one; make another cached_table for other rows.");
    detail::resize_cache(core(), ref(), policy_, cache::count(rows).value());
  }

  /// The slots as a table in device memory, whose rows kernels read after resolve; only under cache::lru.
  /// Rows of codes are elements of codes() or bytes of records(); rows of optimizer records have the weights
  /// in their first width() columns, the state behind them. Kernels must not write to it.
  [[nodiscard]] auto device_rows() const {
    static_assert(detail::keeps_order<Policy>,
                  "ferry: rows have slots that a program may read under cache::lru alone, by resolve.");
    return detail::rows_in_slots(core(), 0, table_);
  }
  /// The scales of the codes in device_rows(), with the same slots.
  [[nodiscard]] auto device_scales() const {
    static_assert(detail::keeps_order<Policy>,
                  "ferry: rows have slots that a program may read under cache::lru alone, by resolve.");
    static_assert(
        detail::has_cached_scales<Table>(),
        "ferry: only scales in host memory that are an array have slots; others lie in the table, or in its records.");
    return detail::rows_in_slots(core(), 1, record_state().scales);
  }
  /// Enqueues that a group of cache::lru has no cached rows, as if it had never had any: a request has ended.
  /// Changes are written to the table. Throws invalid_argument if there is no such group.
  template <class Exec, class Group>
  [[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket forget(
      const Exec& exec, Group group) {
    static_assert(detail::keeps_order<Policy>,
                  "ferry: forget empties a group of cache::lru; other policies have no groups.");
    static_assert(std::integral<Group>, "ferry: forget takes the number of a group.");
    return detail::call_on_cache(exec, "forget", core(), [&](auto& call) {
      detail::empty_group(call, core(), cache::count(group).value());
    });
  }
  /// resolve without slots, for rows of later batches; on an instance of its own beside other work.
  template <class Exec, class Rows, class... Policies>
  [[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket prefetch(
      const Exec& exec, const Rows& rows, Policies... policies) {
    return detail::prefetch_rows(exec, *this, rows, policies...);
  }

  /// For the verbs: the cache, the table and the state in records, with their record of accesses. Throws
  /// invalid_argument if the cache was moved elsewhere or the table was destroyed.
  /// @{
  [[nodiscard]] detail::row_cache& core() const {
    if (core_ == nullptr) throw invalid_argument("ferry::cached_table: the cache was moved elsewhere");
    return *core_;
  }
  [[nodiscard]] ref_type ref() const {
    ref_type view = table_;
    view.accesses = core().table.lock();
    return view;
  }
  [[nodiscard]] ref_type whole() const { return traits::whole(ref()); }
  [[nodiscard]] auto record_state() const { return state_.with(core().table.lock()); }
  /// @}

 private:
  void end() noexcept {
    if (core_ != nullptr) detail::end_cache(*core_);
    core_ = nullptr;
  }

  Policy policy_;   // guarded by the cache's lock
  ref_type table_;  // without the record of accesses, so that its end shows
  typename traits::state state_;
  std::unique_ptr<detail::row_cache> core_;
};

/// Constructor for arguments that can't be cached: does not compile, and says why.
template <CachePolicy Policy>
class cached_table<detail::refused_table, Policy> {
 public:
  /// Refuses all arguments.
  template <class... Arguments>
  explicit cached_table(Arguments&&...) {
    detail::refuse_cached_table<Arguments...>();
  }
};
/// Deduces the class that refuses them.
template <class... Arguments>
  requires(detail::is_refused_cache<Arguments...>())
cached_table(Arguments&&...)
->cached_table<detail::refused_table, cache::first>;

}  // namespace ferry

template <class Table, class Policy>
inline constexpr bool ferry::detail::is_table_object<ferry::cached_table<Table, Policy>> = true;
template <class Table, class Policy>
inline constexpr bool ferry::detail::is_records<ferry::cached_table<Table, Policy>> =
    ferry::detail::is_records<Table>;
