// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/loader/detail/pipeline.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

template <class Exec>
class copy_stream_of final : public copy_stream {
 public:
  using backend = execution_backend<Exec>;
  static constexpr bool on_host = is_host_exec<Exec>;

  copy_stream_of(const Exec& exec, const slot_layout& layout, std::size_t slots)
      : slot_bytes_(layout.bytes), host_("loader::slots", layout.bytes_of(slots)) {
    static_cast<void>(engine::get(exec));  // made first, so it is released last
    if constexpr (!on_host) {
      device_ = tensor<std::byte, device_space>("loader::batches", device{backend::device_of(exec)},
                                                layout.bytes_of(slots));
      side_ = engine::get(exec)->side_stream(exec);
      id_ = backend::id_of(*side_);
    }
    exec_.emplace(exec);
  }

  [[nodiscard]] bool travels() const override { return !on_host; }

  void give_memory(slot& target, std::size_t index) override {
    target.host = host_.data() + index * slot_bytes_;
    target.device = on_host ? target.host : device_.data() + index * slot_bytes_;
    if (on_host) target.device_accesses = target.host_accesses;
  }

  std::int64_t send(slot& target, const slot_layout& layout, std::int64_t rows) override {
    std::int64_t sent = 0;
    if constexpr (!on_host) {
      const typename backend::device_guard guard(*side_);
      const auto move = [&](std::size_t offset, std::size_t bytes) {
        transfer(*side_, "ferry::prefetch::transfer", target.device + offset, device_space::name,
                 target.host + offset, pinned_space::name, static_cast<std::int64_t>(bytes));
        sent += static_cast<std::int64_t>(bytes);
      };
      const auto count = static_cast<std::size_t>(rows);
      std::size_t payload = 0, end = 0;
      for (const slot_field& field : layout.fields) {
        payload += field.row_bytes * count;
        end = field.offset + field.row_bytes * count;
      }
      if (payload * 8 >= end * 7)
        move(0, end);  // one transfer, with the little that lies between the arrays
      else
        for (const slot_field& field : layout.fields) move(field.offset, field.row_bytes * count);
      const auto owner = engine::get(*side_);
      const auto order = owner->lock_order();
      target.arrived = owner->record(*side_);
      target.host_accesses->add_read(target.arrived, id_);
      target.device_accesses->add_write(target.arrived, id_);
    }
    return sent;
  }

  void order(event& before) override {
    const typename backend::device_guard guard(*exec_);
    backend::wait_for(*exec_, before);
  }

  void require_usable() const override {
    if (exec_ && backend::capturing(*exec_))
      throw invalid_argument(
          "ferry::prefetcher: the instance is being captured into a graph, so the end of the work on the last batch can't be recorded; end the capture before next()");
  }
  [[nodiscard]] std::exception_ptr take_finding() override {
    return exec_ ? engine::get(*exec_)->take_finding(backend::id_of(*exec_), backend::stream_of(*exec_))
                 : nullptr;
  }
  [[nodiscard]] event_handle mark() override { return engine::get(*exec_)->record(*exec_); }

  void close() noexcept override {
    static const std::string label = "ferry::prefetch::close";
    try {
      if (side_ != nullptr) backend::fence(*side_, label);
      if (exec_) backend::fence(*exec_, label);
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
    }
    side_ = nullptr;
    exec_.reset();
    device_ = {};
    host_ = {};
  }

 private:
  std::size_t slot_bytes_;
  tensor<std::byte, pinned_space> host_;
  tensor<std::byte, device_space> device_;
  std::optional<Exec> exec_;
  std::shared_ptr<Exec> side_;
  instance_id id_ = 0;
};

}  // namespace

/// The prefetchers of an execution space. Kokkos::finalize closes those that still live, before the engine,
/// which they made before they were added. Thread-safe.
template <class Exec>
class living_prefetchers {
 public:
  living_prefetchers() = default;
  living_prefetchers(const living_prefetchers&) = delete;
  living_prefetchers& operator=(const living_prefetchers&) = delete;
  ~living_prefetchers() {
    for (const auto& prefetcher : list_)
      if (const auto alive = prefetcher.lock()) alive->close();
  }
  void add(const std::shared_ptr<closable>& prefetcher) {
    const std::lock_guard lock(guard_);
    std::erase_if(list_, [](const auto& entry) { return entry.expired(); });
    list_.push_back(prefetcher);
  }

 private:
  std::mutex guard_;
  std::vector<std::weak_ptr<closable>> list_;
};

template <ExecutionSpace Exec>
std::unique_ptr<copy_stream> make_copy_stream(const Exec& exec, const slot_layout& layout,
                                              std::size_t slots) {
  return std::make_unique<copy_stream_of<Exec>>(exec, layout, slots);
}

template <ExecutionSpace Exec>
void close_at_finalize(const std::shared_ptr<closable>& prefetcher) {
  until_finalize<living_prefetchers<Exec>>()->add(prefetcher);
}

void close_or_abandon(std::shared_ptr<closable> prefetcher) {
  if (prefetcher->in_own_process())
    prefetcher->close();
  else
    process_identity::get().abandon(new std::shared_ptr<closable>(std::move(prefetcher)));
}

template <ExecutionSpace Exec>
std::shared_ptr<pipeline> make_pipeline(const Exec& exec, const source_facts& source, batch_maker maker,
                                        const prefetch_options& options) {
  const batch_order order(source.samples, options);
  const slot_layout layout = source.layout(options.batch, "prefetcher");
  const std::size_t depth = slots_of(options);
  return pipeline::make(make_copy_stream(exec, layout, depth), std::move(maker), layout, order, options,
                        depth);
}

#define FERRY_LANES_OF(EXEC)                                                                            \
  template std::unique_ptr<copy_stream> make_copy_stream(const EXEC&, const slot_layout&, std::size_t); \
  template void close_at_finalize<EXEC>(const std::shared_ptr<closable>&);                              \
  template std::shared_ptr<pipeline> make_pipeline(const EXEC&, const source_facts&, batch_maker,       \
                                                   const prefetch_options&);
FERRY_FOR_EXECUTION_SPACES(FERRY_LANES_OF)
#undef FERRY_LANES_OF

}  // namespace ferry::detail
