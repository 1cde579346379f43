// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/prefetch_options.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/extents.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
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
/// rows that one of those steps will update, which their plans tell. The late part reads these rows on the
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
  /// True if the user's instance is being captured into a graph.
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
