// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/row_prefetcher.hpp>

#include "../../backends/enabled.hpp"
#include "../runtime/worker_pool.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// The unique rows of a plan: ascending, `*count` of them.
struct sorted_rows {
  const std::int64_t* rows = nullptr;
  const std::int64_t* count = nullptr;

  KOKKOS_FUNCTION bool contains(std::int64_t row) const {
    std::int64_t begin = 0, end = *count;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      if (rows[middle] < row)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < *count && rows[begin] == row;
  }
};

/// How many steps may lie between the gather of a batch and its use.
inline constexpr int most_ahead = 8;

/// Splits the rows of a batch: those that no step of the window updates are read early, the others late. One
/// thread per position; -1 in a list leaves the position to the other one.
struct split_hazards {
  const std::int64_t* row_of;  ///< of each position; -1 for none
  sorted_rows window[most_ahead];
  int steps;
  std::int64_t* early;
  std::int64_t* late;

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    const std::int64_t row = row_of[position];
    bool hit = false;
    for (int i = 0; i < steps && !hit; ++i) hit = window[i].contains(row);
    early[position] = hit ? -1 : row;
    late[position] = hit ? row : -1;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {
namespace {

/// The memory of one batch.
template <class Space>
struct row_room {
  tensor<std::byte, Space> rows;
  tensor<std::int64_t, Space> early;  ///< by position: the row to read ahead, or -1
  tensor<std::int64_t, Space> late;   ///< by position: the row to read after the steps before it, or -1
};

/// The splitting kernel, with the window's rows.
kernels::split_hazards splitter(const row_plan& plan, const std::vector<row_plan>& window,
                                std::int64_t* early, std::int64_t* late) {
  kernels::split_hazards split{plan.storage()->row_of, {}, 0, early, late};
  for (const row_plan& step : window)
    split.window[split.steps++] = {step.storage()->unique_rows, step.storage()->unique_count};
  return split;
}

template <class Exec>
row_plan plan_of_slot(const Exec& exec, const row_request<Exec>& request, const slot& batch,
                      const slot_field& indices) {
  const auto plan_as = [&]<class Index>(Index) {
    array_ref<const Index, batch_space_of<Exec>> list;
    const std::size_t count = batch.samples.size() * indices.extents.width();
    list.describe_dense(1, &count);
    list.label = indices.label;
    list.accesses = batch.device_accesses;
    list.data = reinterpret_cast<const Index*>(batch.device + indices.offset);
    return make_plan(exec, list, request.table.rows());
  };
  if (request.index_bytes == sizeof(std::int32_t))
    return request.signed_indices ? plan_as(std::int32_t{}) : plan_as(std::uint32_t{});
  return request.signed_indices ? plan_as(std::int64_t{}) : plan_as(std::uint64_t{});
}

/// The rooms, and what all backends share.
template <class Exec>
class row_pipeline_of : public row_pipeline {
 public:
  using space = batch_space_of<Exec>;
  using backend = execution_backend<Exec>;

  /// `positions`: the most that a batch has.
  row_pipeline_of(const Exec& exec, const row_request<Exec>& request, std::size_t positions,
                  std::unique_ptr<pipeline> ring, std::size_t ahead)
      : row_pipeline(std::move(ring), ahead), exec_(exec), request_(request) {
    const std::array<std::size_t, 2> sizes{positions, static_cast<std::size_t>(request.table.width())};
    extents_ = shape<dynamic_rank>::make(sizes, "row_prefetcher::rows", request.element_bytes);
    const device target = memory_home(exec);
    for (std::size_t i = 0; i <= ahead; ++i) {
      row_room<space>& added = rooms_.emplace_back();
      added.rows =
          tensor<std::byte, space>("row_prefetcher::rows", target, extents_.size() * request.element_bytes);
      added.early = tensor<std::int64_t, space>("row_prefetcher::early", target, positions);
      added.late = tensor<std::int64_t, space>("row_prefetcher::late", target, positions);
    }
  }

  [[nodiscard]] bool capturing() const final { return backend::capturing(*exec_); }
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
    const auto rows = list.first(positions);
    array_shape out;
    out.describe_dense(memory.extents.rank(), memory.extents.sizes().data());
    out.label = memory.label;
    out.accesses = memory.accesses;
    return request_.gather(instance, table, request_.data, make_ref(rows), out, memory.data);
  }

  void release() noexcept override {
    rooms_.clear();
    exec_.reset();
  }

  std::optional<Exec> exec_;
  row_request<Exec> request_;
  shape<dynamic_rank> extents_;  ///< of the rows of a full batch
  std::vector<row_room<space>> rooms_;
};

/// Gathers rows ahead on a device: on a stream of its own.
template <class Exec>
class device_row_pipeline final : public row_pipeline_of<Exec> {
  using base = row_pipeline_of<Exec>;
  using backend = typename base::backend;

 public:
  device_row_pipeline(const Exec& exec, const row_request<Exec>& request, std::size_t positions,
                      std::unique_ptr<pipeline> ring, std::size_t ahead)
      : base(exec, request, positions, std::move(ring), ahead),
        side_(engine::get(exec)->side_stream(exec)),
        source_(this->request_.table) {
    source_.accesses = nullptr;  // later writes are those of steps, which the window is about
  }
  ~device_row_pipeline() override { this->close(); }

  [[nodiscard]] row_plan plan(const slot& batch, const slot_field& indices) const override {
    return this->plan_on(*side_, batch, indices);
  }

  void order_after_steps() override {
    const Exec& exec = *this->exec_;
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
    this->read(*side_, source_, batch.early, room, n).drop();
  }
  void end(std::size_t room, std::int64_t positions) override {
    this->read(*this->exec_, this->request_.table, this->rooms_[room].late, room, positions).drop();
  }

  void release() noexcept override {
    static const std::string label = "ferry::prefetch_rows::close";
    try {
      if (side_ != nullptr) backend::fence(*side_, label);
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
    }
    side_ = nullptr;
    base::release();
  }

 private:
  std::shared_ptr<Exec> side_;
  array_shape source_;  ///< the table without the record of writes in flight
};

/// The early reads of a room, by a thread of its own.
class early_reader {
 public:
  explicit early_reader(const processor_set& processors) : thread_(processors) {}
  early_reader(const early_reader&) = delete;
  early_reader& operator=(const early_reader&) = delete;
  ~early_reader() { thread_.wait(); }

  /// Begins the early read of a batch into the room. The one before it has ended.
  void begin(const array_shape& table, const void* data, std::size_t element_bytes,
             row_room<pinned_space>& room, const row_plan& plan, const std::vector<row_plan>& window) {
    rows_ = static_cast<const std::byte*>(data);
    row_bytes_ = static_cast<std::size_t>(table.width()) * element_bytes;
    stride_bytes_ = table.row_stride() * static_cast<std::int64_t>(element_bytes);
    out_ = room.rows.data();
    plan_ = plan;
    window_ = window;
    split_ = splitter(plan_, window_, room.early.data(), room.late.data());
    thread_.begin([](void* self, int) noexcept { static_cast<const early_reader*>(self)->read(); }, this, 0);
  }
  void wait() { thread_.wait(); }

 private:
  void read() const noexcept {
    std::byte* out = out_;
    for (std::int64_t position = 0; position < plan_.positions(); ++position, out += row_bytes_) {
      split_(position);
      const std::int64_t row = split_.early[position];
      if (row >= 0 && row_bytes_ != 0) std::memcpy(out, rows_ + row * stride_bytes_, row_bytes_);
    }
  }

  const std::byte* rows_ = nullptr;
  std::size_t row_bytes_ = 0;
  std::int64_t stride_bytes_ = 0;
  std::byte* out_ = nullptr;
  row_plan plan_;
  std::vector<row_plan> window_;
  kernels::split_hazards split_{};
  worker_thread thread_;
};

/// Gathers rows ahead on a host backend: on threads of its own, one for each room. They read no row that a
/// step of the window writes, so the two never touch the same memory.
template <class Exec>
class host_row_pipeline final : public row_pipeline_of<Exec> {
  using base = row_pipeline_of<Exec>;

 public:
  host_row_pipeline(const Exec& exec, const row_request<Exec>& request, std::size_t positions,
                    std::unique_ptr<pipeline> ring, std::size_t ahead)
      : base(exec, request, positions, std::move(ring), ahead),
        accesses_(std::exchange(this->request_.table.accesses, nullptr)),
        processors_(processor_set::of_process()) {
    for (std::size_t i = 0; i <= ahead; ++i) readers_.push_back(std::make_unique<early_reader>(processors_));
  }
  ~host_row_pipeline() override { this->close(); }

  [[nodiscard]] row_plan plan(const slot& batch, const slot_field& indices) const override {
    return this->plan_on(*this->exec_, batch, indices);
  }

  /// Steps have ended when they return; work of a device may not have.
  void order_after_steps() override {
    if (accesses_ != nullptr) accesses_->wait_for_writes();
  }

  void begin(std::size_t room, const row_plan& plan, const std::vector<row_plan>& window) override {
    auto& batch = this->rooms_[room];
    batch.rows.accesses()->wait_for_all();  // a device may still read the batch before
    readers_[room]->begin(this->request_.table, this->request_.data, this->request_.element_bytes, batch,
                          plan, window);
  }
  void end(std::size_t room, std::int64_t positions) override {
    readers_[room]->wait();
    this->read(*this->exec_, this->request_.table, this->rooms_[room].late, room, positions).join();
  }

  void release() noexcept override {
    readers_.clear();
    base::release();
  }

 private:
  std::shared_ptr<access_tracker> accesses_;  ///< of the table
  processor_set processors_;
  std::vector<std::unique_ptr<early_reader>> readers_;  ///< write to the rooms
};

}  // namespace

const row_entry* row_pipeline::next() {
  if (!in_own_process()) {
    slot* none = nullptr;
    static_cast<void>(ring_->pull(false, none));  // says why
  }
  if (closed_)
    throw invalid_argument(
        "ferry::row_prefetcher: Kokkos was finalized, which stops its prefetchers; end the loop before Kokkos::finalize");
  if (capturing())
    throw invalid_argument(
        "ferry::row_prefetcher: the instance is being captured into a graph; end the capture before next()");
  if (in_next_.exchange(true))
    throw invalid_argument(
        "ferry::row_prefetcher: two threads call next() at the same time, but a batch is valid only until the next call; give each thread a prefetcher of its own with rank and ranks");
  const leaving_next leaving{in_next_};
  ring_->throw_finding();
  order_after_steps();  // the step of the batch before has been enqueued
  current_.reset();
  if (queue_.empty()) pull(true);
  row_entry& front = queue_.front();
  if (front.batch != nullptr) {
    // When this throws, the next call returns the batch.
    ring_->order_after(*front.batch);
    end(front.room, front.plan.positions());
    current_ = std::move(front);
    --batches_;
    ++position_;
  }
  queue_.erase(queue_.begin());
  while (batches_ < ahead_ && !ended_ && broken_ == nullptr && pull(false)) {
  }
  return current_ ? &*current_ : nullptr;
}

void row_pipeline::close() noexcept {
  if (!in_own_process() || std::exchange(closed_, true)) return;
  ring_->close();  // waits for the user's instance
  release();
  queue_.clear();
  current_.reset();
}

/// Takes a batch and begins to read its rows. Returns false if none is ready. A look ahead (not
/// `may_block`) drops an error of the ring, which throws it again when the batch is due.
bool row_pipeline::pull(bool may_block) {
  if (broken_ != nullptr) std::rethrow_exception(broken_);
  slot* batch = nullptr;
  pulled result = pulled::nothing;
  try {
    result = ring_->pull(may_block, batch);
  } catch (...) {
    if (may_block) throw;
    return false;
  }
  if (result == pulled::nothing) return false;
  if (result == pulled::end) {
    ended_ = ring_->has_ended();
    queue_.push_back({});
    return true;
  }
  try {
    read_ahead(*batch);
  } catch (...) {  // the batch is lost
    broken_ = std::current_exception();
    if (may_block) throw;
    return false;
  }
  return true;
}

void row_pipeline::read_ahead(slot& batch) {
  row_entry entry{&batch, plan(batch, ring_->layout().fields[0]), number_ % (ahead_ + 1)};
  std::vector<row_plan> window;
  if (current_) window.push_back(current_->plan);
  for (const row_entry& earlier : queue_)
    if (earlier.batch != nullptr) window.push_back(earlier.plan);
  begin(entry.room, entry.plan, window);
  queue_.push_back(std::move(entry));
  ++number_;
  ++batches_;
}

template <ExecutionSpace Exec>
std::shared_ptr<row_pipeline> make_row_pipeline(const Exec& exec, const row_request<Exec>& request,
                                                const source_facts& source, batch_maker maker,
                                                const prefetch_options& options) {
  if (options.ahead < 1 || options.ahead > kernels::most_ahead)
    throw invalid_argument(joined("ferry::row_prefetcher: ahead is ", options.ahead, ", must be from 1 to ",
                                  kernels::most_ahead));
  const batch_order order(source.samples, options, "row_prefetcher");
  const slot_layout layout = source.layout(options.batch, "row_prefetcher");
  const auto ahead = static_cast<std::size_t>(options.ahead);
  const std::size_t depth = slots_of(options) + ahead;
  auto ring = pipeline::make(make_copy_stream(exec, layout, depth), std::move(maker), layout, order, options,
                             depth, options.ahead + 1);
  const std::size_t positions = static_cast<std::size_t>(options.batch) * layout.fields.at(0).extents.width();
  using rows = std::conditional_t<is_host_exec<Exec>, host_row_pipeline<Exec>, device_row_pipeline<Exec>>;
  return std::make_shared<rows>(exec, request, positions, std::move(ring), ahead);
}

#define FERRY_ROW_PIPELINES_OF(EXEC)                        \
  template std::shared_ptr<row_pipeline> make_row_pipeline( \
      const EXEC&, const row_request<EXEC>&, const source_facts&, batch_maker, const prefetch_options&);
FERRY_FOR_EXECUTION_SPACES(FERRY_ROW_PIPELINES_OF)
#undef FERRY_ROW_PIPELINES_OF

}  // namespace ferry::detail
