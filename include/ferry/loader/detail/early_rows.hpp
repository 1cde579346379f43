// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/loader/detail/hazards.hpp>
#include <ferry/loader/detail/job_thread.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Where the rows of one batch are gathered to.
template <class T, class Space>
struct row_room {
  tensor<T, Space> rows;
  tensor<std::int64_t, Space> early;  ///< by position: the row to read ahead, or -1
  tensor<std::int64_t, Space> late;   ///< by position: the row to read after the steps before it, or -1
  std::int64_t job = 0;               ///< number of the early read, on a host backend
};

/// Gathers rows ahead on a device: on a stream of its own.
template <class Exec, class T, class TableSpace>
class early_rows {
 public:
  using room = row_room<T, device_space>;
  using backend = execution_backend<Exec>;
  using path_policy =
      std::conditional_t<std::is_same_v<TableSpace, pinned_space>, path::ordered, path::direct>;

  early_rows(const Exec& exec, const array_ref<const T, TableSpace>& table)
      : side_(engine::get(exec)->side_streams().take(exec)), table_(table), ahead_(table) {
    ahead_.accesses = nullptr;  // later writes are those of steps, which the window is about
  }

  /// The instance that plans of batches are made on.
  [[nodiscard]] const Exec& planner(const Exec&) const { return *side_; }

  /// The steps before this point, and the writes of other instances, have ended when later early reads begin.
  void come_after(const Exec& exec) {
    const typename backend::device_guard on(exec);
    if (const event_handle before = engine::get(exec)->record(exec)) backend::wait_for(*side_, *before);
    if (table_.accesses == nullptr) return;
    for (const event_handle& each : table_.accesses->before_read(backend::id_of(*side_)))
      backend::wait_for(*side_, *each);
  }

  /// Enqueues the early read of a batch whose use comes after the steps of `window`.
  void begin(room& to, const row_plan& plan, const std::vector<row_plan>& window) {
    const std::int64_t n = plan.positions();
    launch_context<Exec> of(*side_, "prefetch_rows");
    kernels::split_hazards split{plan.storage()->row_of, {}, 0, to.early.data(), to.late.data()};
    of.writes_to(make_ref(to.early));
    of.writes_to(make_ref(to.late));
    of.use(plan.storage());
    for (const row_plan& each : window) {
      of.use(each.storage());
      split.window[split.steps++] = {each.storage()->unique_rows, each.storage()->unique_count};
    }
    launch(*side_, of.label("split"), n, split);
    of.finish().drop();
    gather(*side_, ahead_, to.early.first(n), to.rows.first(n), bounds::skip{}, path_policy{}).drop();
  }
  /// Enqueues the late read on the user's instance. It writes to the same array as the early one, so it comes
  /// after that.
  void end(const Exec& exec, room& of, std::int64_t positions) {
    gather(exec, table_, of.late.first(positions), of.rows.first(positions), bounds::skip{}, path_policy{})
        .drop();
  }
  void close() noexcept {
    static const std::string label = "ferry::prefetch_rows::close";
    try {
      if (side_ != nullptr) backend::fence(*side_, label);
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
    }
    side_ = nullptr;
  }

 private:
  std::shared_ptr<Exec> side_;
  array_ref<const T, TableSpace> table_;
  array_ref<const T, TableSpace> ahead_;  ///< without the record of writes in flight
};

/// Gathers rows ahead on a host backend: on a thread of its own. It reads no row that a step of the window
/// writes, so the two never touch the same memory.
template <class Exec, class T, class TableSpace>
class early_rows_of_host {
 public:
  using room = row_room<T, pinned_space>;

  early_rows_of_host(const Exec&, const array_ref<const T, TableSpace>& table)
      : table_(table), accesses_(table.accesses), thread_(std::make_unique<job_thread>()) {
    table_.accesses = nullptr;
  }

  [[nodiscard]] const Exec& planner(const Exec& exec) const { return exec; }
  /// Steps have ended when they return; work of a device may not have.
  void come_after(const Exec&) const {
    if (accesses_ != nullptr) accesses_->wait_for_writes();
  }

  void begin(room& to, const row_plan& plan, const std::vector<row_plan>& window) {
    to.rows.accesses()->wait_for_all();  // a device may still read the batch before
    to.job = thread_->put(job{table_, &to, plan, window});
  }
  void end(const Exec& exec, room& of, std::int64_t positions) {
    thread_->wait_for(of.job);
    gather(exec, table_, of.late.first(positions), of.rows.first(positions), bounds::skip{}, path::direct{})
        .join();
  }
  void close() noexcept { thread_ = nullptr; }

 private:
  struct job {
    array_ref<const T, TableSpace> table;
    room* to;
    row_plan plan;
    std::vector<row_plan> window;

    void operator()() const noexcept {
      kernels::split_hazards split{plan.storage()->row_of, {}, 0, to->early.data(), to->late.data()};
      for (const row_plan& each : window)
        split.window[split.steps++] = {each.storage()->unique_rows, each.storage()->unique_count};
      const auto bytes = static_cast<std::size_t>(table.width()) * sizeof(T);
      const std::int64_t stride = table.row_stride();
      for (std::int64_t position = 0; position < plan.positions(); ++position) {
        split(position);
        const std::int64_t row = split.early[position];
        if (row >= 0 && bytes != 0)
          std::memcpy(to->rows.data() + position * table.width(), table.data + row * stride, bytes);
      }
    }
  };

  array_ref<const T, TableSpace> table_;  ///< without the record of accesses
  std::shared_ptr<access_tracker> accesses_;
  std::unique_ptr<job_thread> thread_;
};

template <class Exec, class T, class TableSpace>
using early_rows_on = std::conditional_t<is_host_exec<Exec>, early_rows_of_host<Exec, T, TableSpace>,
                                         early_rows<Exec, T, TableSpace>>;

}  // namespace ferry::detail
