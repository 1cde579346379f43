// SPDX-License-Identifier: Apache-2.0
#include "row_reader.hpp"

#include "hazards.hpp"
#include "job_thread.hpp"

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

namespace {

/// The memory of one batch.
template <class Space>
struct row_room {
  tensor<std::byte, Space> rows;
  tensor<std::int64_t, Space> early;  ///< by position: the row to read ahead, or -1
  tensor<std::int64_t, Space> late;   ///< by position: the row to read after the steps before it, or -1
  std::int64_t job = 0;               ///< number of the early read, on a host backend
};

/// The splitting kernel, with the window's rows.
kernels::split_hazards splitter(const row_plan& plan, const std::vector<row_plan>& window,
                                std::int64_t* early, std::int64_t* late) {
  kernels::split_hazards split{plan.storage()->row_of, {}, 0, early, late};
  for (const row_plan& step : window)
    split.window[split.steps++] = {step.storage()->unique_rows, step.storage()->unique_count};
  return split;
}

template <class Index, class Exec>
row_plan plan_of_slot(const Exec& exec, const slot& batch, const slot_field& indices, std::int64_t rows) {
  array_ref<const Index, batch_space_of<Exec>> list;
  const std::size_t count = batch.samples.size() * indices.extents.width();
  list.describe_dense(1, &count);
  list.label = indices.label;
  list.accesses = batch.device_accesses;
  list.data = reinterpret_cast<const Index*>(batch.device + indices.offset);
  return make_plan(exec, list, rows);
}

template <class Exec>
row_plan plan_of_slot(const Exec& exec, const row_request<Exec>& request, const slot& batch,
                      const slot_field& indices) {
  const std::int64_t rows = request.table.rows();
  if (request.index_bytes == sizeof(std::int32_t))
    return request.signed_indices ? plan_of_slot<std::int32_t>(exec, batch, indices, rows)
                                  : plan_of_slot<std::uint32_t>(exec, batch, indices, rows);
  return request.signed_indices ? plan_of_slot<std::int64_t>(exec, batch, indices, rows)
                                : plan_of_slot<std::uint64_t>(exec, batch, indices, rows);
}

/// The rooms, and the part of a reader that all backends share.
template <class Exec>
class row_reader_of : public row_reader {
 public:
  using space = batch_space_of<Exec>;
  using backend = execution_backend<Exec>;

  row_reader_of(const Exec& exec, const row_request<Exec>& request, std::size_t positions, std::size_t rooms)
      : exec_(exec), request_(request) {
    const std::array<std::size_t, 2> sizes{positions, static_cast<std::size_t>(request.table.width())};
    extents_ = shape<dynamic_rank>::make(sizes, "row_prefetcher::rows", request.element_bytes);
    const device home = memory_home(exec);
    for (std::size_t i = 0; i < rooms; ++i) {
      row_room<space>& added = rooms_.emplace_back();
      added.rows =
          tensor<std::byte, space>("row_prefetcher::rows", home, extents_.size() * request.element_bytes);
      added.early = tensor<std::int64_t, space>("row_prefetcher::early", home, positions);
      added.late = tensor<std::int64_t, space>("row_prefetcher::late", home, positions);
    }
  }

  [[nodiscard]] bool capturing() const final { return backend::capturing(exec_); }
  [[nodiscard]] std::size_t rooms() const final { return rooms_.size(); }
  [[nodiscard]] row_memory rows(std::size_t room, std::int64_t positions) final {
    auto& memory = rooms_[room].rows;
    return {memory.shared_label(), extents_.with_rows<dynamic_rank>(static_cast<std::size_t>(positions)),
            memory.data(), memory.accesses()};
  }

 protected:
  [[nodiscard]] row_plan plan_on(const Exec& instance, const slot& batch, const slot_field& indices) const {
    return plan_of_slot(instance, request_, batch, indices);
  }
  /// Gathers the rows of the early or the late list.
  [[nodiscard]] ticket read(const Exec& instance, const array_shape& table,
                            const tensor<std::int64_t, space>& list, std::size_t index,
                            std::int64_t positions) {
    const row_memory memory = rows(index, positions);
    const auto listed = list.first(positions);
    array_shape out;
    out.describe_dense(memory.extents.rank(), memory.extents.sizes().data());
    out.label = memory.label;
    out.accesses = memory.accesses;
    return request_.gather(instance, table, request_.data, make_ref(listed), out, memory.data);
  }

  Exec exec_;
  row_request<Exec> request_;
  shape<dynamic_rank> extents_;  ///< of the rows of a full batch
  std::vector<row_room<space>> rooms_;
};

/// Gathers rows ahead on a device: on a stream of its own.
template <class Exec>
class device_row_reader final : public row_reader_of<Exec> {
  using base = row_reader_of<Exec>;
  using backend = typename base::backend;

 public:
  device_row_reader(const Exec& exec, const row_request<Exec>& request, std::size_t positions,
                    std::size_t rooms)
      : base(exec, request, positions, rooms),
        side_(engine::get(exec)->side_streams().take(exec)),
        ahead_(this->request_.table) {
    ahead_.accesses = nullptr;  // later writes are those of steps, which the window is about
  }

  [[nodiscard]] row_plan plan(const slot& batch, const slot_field& indices) const override {
    return this->plan_on(*side_, batch, indices);
  }

  void order_after_steps() override {
    const Exec& exec = this->exec_;
    const typename backend::device_guard guard(exec);
    if (const event_handle before = engine::get(exec)->record(exec)) backend::wait_for(*side_, *before);
    if (this->request_.table.accesses == nullptr) return;
    for (const event_handle& write : this->request_.table.accesses->before_read(backend::id_of(*side_)))
      backend::wait_for(*side_, *write);
  }

  void begin(std::size_t room, const row_plan& plan, const std::vector<row_plan>& window) override {
    auto& batch = this->rooms_[room];
    const std::int64_t n = plan.positions();
    launch_context<Exec> call(*side_, "prefetch_rows");
    call.writes_to(make_ref(batch.early));
    call.writes_to(make_ref(batch.late));
    call.use(plan.storage());
    for (const row_plan& step : window) call.use(step.storage());
    launch(*side_, call.label("split"), n, splitter(plan, window, batch.early.data(), batch.late.data()));
    call.finish().drop();
    this->read(*side_, ahead_, batch.early, room, n).drop();
  }
  void end(std::size_t room, std::int64_t positions) override {
    this->read(this->exec_, this->request_.table, this->rooms_[room].late, room, positions).drop();
  }

  void close() noexcept override {
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
  array_shape ahead_;  ///< the table without the record of writes in flight
};

/// The early read of a batch, by a thread.
struct early_copy {
  const std::byte* table;
  std::size_t row_bytes;
  std::int64_t stride_bytes;
  row_room<pinned_space>* room;
  row_plan plan;
  std::vector<row_plan> window;

  void operator()() const noexcept {
    const auto split = splitter(plan, window, room->early.data(), room->late.data());
    std::byte* out = room->rows.data();
    for (std::int64_t position = 0; position < plan.positions(); ++position, out += row_bytes) {
      split(position);
      const std::int64_t row = split.early[position];
      if (row >= 0 && row_bytes != 0) std::memcpy(out, table + row * stride_bytes, row_bytes);
    }
  }
};

/// Gathers rows ahead on a host backend: on a thread of its own. It reads no row that a step of the window
/// writes, so the two never touch the same memory.
template <class Exec>
class host_row_reader final : public row_reader_of<Exec> {
  using base = row_reader_of<Exec>;

 public:
  host_row_reader(const Exec& exec, const row_request<Exec>& request, std::size_t positions,
                  std::size_t rooms)
      : base(exec, request, positions, rooms),
        accesses_(std::exchange(this->request_.table.accesses, nullptr)),
        thread_(std::make_unique<job_thread>()) {}

  [[nodiscard]] row_plan plan(const slot& batch, const slot_field& indices) const override {
    return this->plan_on(this->exec_, batch, indices);
  }

  /// Steps have ended when they return; work of a device may not have.
  void order_after_steps() override {
    if (accesses_ != nullptr) accesses_->wait_for_writes();
  }

  void begin(std::size_t room, const row_plan& plan, const std::vector<row_plan>& window) override {
    auto& batch = this->rooms_[room];
    batch.rows.accesses()->wait_for_all();  // a device may still read the batch before
    const array_shape& table = this->request_.table;
    const auto element_bytes = static_cast<std::int64_t>(this->request_.element_bytes);
    batch.job = thread_->put(early_copy{static_cast<const std::byte*>(this->request_.data),
                                        static_cast<std::size_t>(table.width() * element_bytes),
                                        table.row_stride() * element_bytes, &batch, plan, window});
  }
  void end(std::size_t room, std::int64_t positions) override {
    auto& batch = this->rooms_[room];
    thread_->wait_for(batch.job);
    this->read(this->exec_, this->request_.table, batch.late, room, positions).join();
  }

  void close() noexcept override { thread_ = nullptr; }

 private:
  std::shared_ptr<access_tracker> accesses_;  ///< of the table
  std::unique_ptr<job_thread> thread_;        ///< writes to the rooms
};

}  // namespace

template <ExecutionSpace Exec>
std::unique_ptr<row_reader> make_row_reader(const Exec& exec, const row_request<Exec>& request,
                                            std::size_t positions, std::size_t rooms) {
  using reader = std::conditional_t<is_host_exec<Exec>, host_row_reader<Exec>, device_row_reader<Exec>>;
  return std::make_unique<reader>(exec, request, positions, rooms);
}

#define FERRY_ROW_READERS_OF(EXEC)                                                                         \
  template std::unique_ptr<row_reader> make_row_reader(const EXEC&, const row_request<EXEC>&, std::size_t, \
                                                       std::size_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_ROW_READERS_OF)
#undef FERRY_ROW_READERS_OF

}  // namespace ferry::detail
