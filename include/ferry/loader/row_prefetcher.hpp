// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/epoch_times.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/loader/prefetcher.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A list of rows by position, -1 for positions without a row.
template <class Exec>
using rows_by_position = array_ref<const std::int64_t, batch_space_of<Exec>>;

/// Gathers the rows of a list.
template <class Exec, class T, class TableSpace>
ticket gather_list(const Exec& exec, const array_shape& table, const void* data,
                   const rows_by_position<Exec>& rows, const array_shape& out, void* memory) {
  using path_policy = std::conditional_t<!is_host_exec<Exec> && std::is_same_v<TableSpace, pinned_space>,
                                         path::ordered, path::direct>;
  const array_ref<const T, TableSpace> source{table, static_cast<const T*>(data)};
  const array_ref<T, batch_space_of<Exec>> batch{out, static_cast<T*>(memory)};
  return gather(exec, source, rows, batch, bounds::skip{}, path_policy{});
}

/// The table of a row_prefetcher and the type of its indices, for compiled functions.
template <class Exec>
struct row_request {
  array_shape table;
  const void* data;
  std::size_t element_bytes;
  /// gather_list of the element type and the table's space.
  ticket (*gather)(const Exec& exec, const array_shape& table, const void* data,
                   const rows_by_position<Exec>& rows, const array_shape& out, void* memory);
  std::size_t index_bytes;
  bool signed_indices;
};

/// A batch whose rows are read ahead.
struct row_entry {
  slot* batch = nullptr;  ///< null: the end of an epoch
  row_plan plan;
  std::size_t room = 0;
};

/// The rows of a batch, positions x width.
struct row_memory {
  array_label label;
  shape<dynamic_rank> extents;
  void* data;
  std::shared_ptr<access_tracker> accesses;
};

/// The inside of a row_prefetcher. The rows of batch j are read in two parts. The early part begins while the
/// steps of batches i to j - 1 have yet to come or run: it comes after all steps before i, and leaves out the
/// rows that one of those steps will update, which their plans list. The late part reads these rows on the
/// user's instance, after step j - 1. So every row is read after its last update and before its next one. The
/// rows of a batch lie in a room, one of a fixed number.
class row_pipeline : public closable {
 public:
  /// The next batch, with its rows; null at the end of an epoch, and after the last one.
  const row_entry* next();
  /// Batches that next() has returned, and those before the first one.
  [[nodiscard]] std::int64_t position() const { return position_; }
  void close() noexcept final;

  [[nodiscard]] pipeline& ring() const { return *ring_; }
  [[nodiscard]] virtual row_memory rows(std::size_t room, std::int64_t positions) = 0;

 protected:
  /// `ahead`: how many batches have their rows read ahead, in ahead + 1 rooms.
  row_pipeline(std::unique_ptr<pipeline> ring, std::size_t ahead)
      : ahead_(ahead), ring_(std::move(ring)), position_(ring_->order().first()) {}

 private:
  /// Functions that know the types: they plan batches and read their rows.
  /// @{
  [[nodiscard]] virtual bool capturing() const = 0;
  /// The plan of a slot's indices.
  [[nodiscard]] virtual row_plan plan(const slot& batch, const slot_field& indices) const = 0;
  /// Lets later early reads begin after the steps before this point and the writes of other instances.
  virtual void order_after_steps() = 0;
  /// Begins the early read of a batch whose use comes after the steps of `window`.
  virtual void begin(std::size_t room, const row_plan& plan, const std::vector<row_plan>& window) = 0;
  /// Enqueues the late read on the user's instance. It writes to the same array as the early one, so it comes
  /// after that.
  virtual void end(std::size_t room, std::int64_t positions) = 0;
  /// Waits for the early reads, and releases the instances and the memory.
  virtual void release() noexcept = 0;
  /// @}

  bool pull(bool may_block);
  void read_ahead(slot& batch);

  std::size_t ahead_;  ///< most batches in the queue
  std::unique_ptr<pipeline> ring_;
  std::vector<row_entry> queue_;
  std::optional<row_entry> current_;
  std::int64_t position_;
  std::size_t number_ = 0;   ///< of batches pulled
  std::size_t batches_ = 0;  ///< in the queue
  bool ended_ = false;
  bool closed_ = false;
  std::atomic<bool> in_next_{false};
  std::exception_ptr broken_;
};

/// The inside of a row_prefetcher. Checks its table.
template <ExecutionSpace Exec>
std::shared_ptr<row_pipeline> make_row_pipeline(const Exec& exec, const row_request<Exec>& request,
                                                const source_facts& source, batch_maker maker,
                                                const prefetch_options& options);

}  // namespace ferry::detail

namespace ferry {

/// A batch of a row_prefetcher: the arrays of its source, the plan of its indices, and the rows that they
/// name. Valid until the next call of next().
template <class T, class Space, class... Values>
class row_batch : public prefetched_batch<Space, Values...> {
 public:
  /// For row_prefetcher.
  row_batch(const prefetched_batch<Space, Values...>& batch, row_plan plan,
            const detail::row_memory& gathered)
      : prefetched_batch<Space, Values...>(batch),
        plan_(std::move(plan)),
        gathered_(gathered.label, static_cast<T*>(gathered.data), gathered.extents, gathered.accesses) {}

  /// The plan of the indices, for the step. Bad indices are reported by the verb that uses it.
  [[nodiscard]] const row_plan& plan() const { return plan_; }
  /// The rows of the table: positions x width, as gather(exec, table, plan(), ...) would give them now. The
  /// rows of bad indices are not written. May be written to.
  [[nodiscard]] const tensor_slice<T, Space>& gathered() const { return gathered_; }

 private:
  row_plan plan_;
  tensor_slice<T, Space> gathered_;
};

namespace detail {

template <class T, class Batch>
struct row_batch_on;
template <class T, class Space, class... Values>
struct row_batch_on<T, prefetched_batch<Space, Values...>> {
  using type = row_batch<T, Space, Values...>;
};

}  // namespace detail

/// A prefetcher of the rows of a table that is being trained: while step k computes, the rows of batch k + 1
/// are gathered. Rows that a step in between updates are read after that step, so all values have the bits of
/// a loop that gathers and steps in turn.
///
///   ferry::row_prefetcher batches(exec, table, ferry::samples_of(pairs), {.batch = 4096, .shuffle = 1});
///   while (auto batch = batches.next()) {
///     loss(exec, batch->gathered(), grads);
///     step(exec, adam, table, state, batch->plan(), grads).detach();
///   }
///
/// Each batch is checked against the batches ahead of it: unique sorted rows against unique sorted rows, on
/// the device. On a device the rows are read on a stream of their own; on a host backend by a thread.
///
/// Between two calls of next(), only rows that the batch names may be written, on `exec`, as a step with
/// batch->plan() does. Else as prefetcher: one thread at a time, errors in order, a stop at any time.
template <class Exec, class Table, class Source>
class row_prefetcher {
  using values = typename Source::values;
  using layouts = detail::batch_of_values<detail::batch_space_of<Exec>, values>;
  using plain_batch = typename layouts::type;
  using element = std::remove_const_t<typename array_traits<Table>::value_type>;
  using table_space = typename array_traits<Table>::memory_space;
  using index = std::tuple_element_t<0, values>;

 public:
  using batch_type = typename detail::row_batch_on<element, plain_batch>::type;  ///< a row_batch

  /// Starts to make batches.
  ///
  ///   exec     the execution space instance that steps
  ///   table    rows x width in memory that kernels of `exec` dereference; must outlive the prefetcher
  ///   source   as for prefetcher; its first array holds indices of rows: int32, uint32, int64 or uint64, one
  ///            or several for each sample
  ///   options  see prefetch_options; `ahead` is the number of batches whose rows are read ahead. More find
  ///            more rows that have to be read late
  ///
  /// Throws what the constructor of prefetcher throws.
  row_prefetcher(const Exec& exec, const Table& table, Source source, const prefetch_options& options = {})
      : inside_(start(exec, table, std::move(source), options)) {}
  /// As above, with a slice or a view that the call makes. Does not compile for a temporary tensor or vector.
  row_prefetcher(const Exec& exec, const Table&& table, Source source, const prefetch_options& options = {})
      : row_prefetcher(exec, table, std::move(source), options) {
    detail::require_lasting<Table>();
  }
  /// Refuses options of other names. Does not compile.
  row_prefetcher(const Exec& exec, const Table& table, Source source, const detail::torch_options&)
      : row_prefetcher(exec, table, std::move(source)) {
    detail::refuse_torch_options<Source>();
  }

  /// The next batch, see prefetcher::next.
  [[nodiscard]] std::optional<batch_type> next() {
    const detail::row_entry* const got = inside_->next();
    if (got == nullptr) return std::nullopt;
    return batch_type({*got->batch, inside_->ring()}, got->plan,
                      inside_->rows(got->room, got->plan.positions()));
  }

  /// See prefetcher::position: the same number for the same batch, however many are read ahead.
  [[nodiscard]] std::int64_t position() const { return inside_->position(); }
  /// Batches of an epoch of this rank.
  [[nodiscard]] std::int64_t batches_per_epoch() const { return inside_->ring().order().batches(); }
  /// The times of the stages in each epoch begun, up to now. The step of a batch includes the time that it
  /// waited with its rows read ahead.
  [[nodiscard]] std::vector<epoch_times> times() const { return inside_->ring().times(); }
  /// times() as a table, a line for each epoch.
  [[nodiscard]] std::string report() const { return to_string(times()); }

 private:
  static std::shared_ptr<detail::row_pipeline> start(const Exec& exec, const Table& table, Source source,
                                                     const prefetch_options& options) {
    detail::require_execution_space<Exec>();
    detail::require_rows<Table>();
    detail::require_reach<Exec, Table>();
    static_assert(
        IndexElement<index>,
        "ferry: the first array of a row_prefetcher's source must hold indices: int32, uint32, int64 or uint64.");
    const auto rows = detail::read_only(make_ref(table));
    detail::require_dense_rows("row_prefetcher", rows);
    detail::require_direct_reach("row_prefetcher", exec, rows);
    const auto shared_source = std::make_shared<const Source>(std::move(source));
    const auto& fields = shared_source->fields();
    const detail::row_request<Exec> request{rows,
                                            rows.data,
                                            sizeof(element),
                                            &detail::gather_list<Exec, element, table_space>,
                                            sizeof(index),
                                            std::is_signed_v<index>};
    return detail::make_row_pipeline(exec, request,
                                     {shared_source->samples(), fields, layouts::element_bytes},
                                     detail::maker_of<Source>(shared_source), options);
  }

  detail::closing<detail::row_pipeline, Exec> inside_;
};

/// Arguments that a row_prefetcher can't take do not compile; a sentence says why.
template <class Exec, class Table, class Source>
  requires(!(ExecutionSpace<Exec> && detail::AnArray<Table> && detail::is_batch_source<Source>))
class row_prefetcher<Exec, Table, Source> {
 public:
  /// Refuses the arguments.
  /// @{
  row_prefetcher(const Exec&, const Table&, const Source&, const prefetch_options& = {}) { refuse(); }
  row_prefetcher(const Exec&, const Table&, const prefetch_options&) { refuse(); }
  /// @}

 private:
  static consteval void refuse() {
    static_assert(
        !detail::is_table_object<Table>,
        "ferry: a row_prefetcher reads rows of a table that kernels dereference: a ferry::tensor, a slice or a view. Of a sharded_table or a cached_table prefetch the indices by ferry::prefetcher and gather the rows.");
    if constexpr (!detail::is_table_object<Table>) {
      detail::require_role<detail::roles::execution_space.kinds, Exec>();
      if constexpr (ExecutionSpace<Exec>) {
        detail::require_role<detail::roles::array.kinds, Table>();
        if constexpr (detail::AnArray<Table>) detail::require_batch_source<Source>();
      }
    }
  }
};
/// Deduces the class that refuses a call without a source or without an execution space.
template <class First, class Second>
row_prefetcher(const First&, const Second&, const prefetch_options&)
    -> row_prefetcher<First, Second, detail::no_source>;

}  // namespace ferry
