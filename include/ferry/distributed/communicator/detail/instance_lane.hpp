// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/device_lane.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::detail {

/// The lane of a rank that works by execution space instances: work of `sends` makes its parts, and `takes`,
/// which may be an instance of another device, copies those of the others to memory of its device.
template <class Exec>
class instance_lane final : public device_lane {
 public:
  using backend = execution_backend<Exec>;

  instance_lane(const Exec& sends, const Exec& takes)
      : sends_(sends), takes_(takes), engine_(engine::get(sends)) {}

  void publish() override { published_ = engine_->record(sends_); }
  [[nodiscard]] const event_handle& published() const override { return published_; }
  [[nodiscard]] int device() const override { return engine_->device(); }

  void take(const device_lane* sender, std::byte* target, const std::byte* source,
            std::size_t bytes) override {
    static constexpr const char* label = "ferry::distributed::take";
    if (sender != nullptr && sender->published() != nullptr) backend::wait_for(takes_, *sender->published());
    const std::string_view source_space = sender == nullptr ? pinned_space::name : device_space::name;
    const transfer_region region(device_space::name, target, source_space, source, bytes, label);
    if (sender == nullptr)
      backend::copy_async(takes_, label, target, source, bytes);
    else
      backend::copy_from_device_async(takes_, label, target, source, sender->device(), bytes);
  }
  void read(std::byte* target, const std::byte* source, std::size_t bytes) const override {
    if (published_ != nullptr) published_->wait();
    backend::read(target, source, bytes);
  }
  void finish() override {
    static const std::string label = "ferry::distributed::taken";
    backend::fence(takes_, label);
  }
  void abandon() noexcept override {
    try {
      finish();
    } catch (...) {  // the device failed: nothing of it runs any more
    }
  }

 private:
  Exec sends_, takes_;
  std::shared_ptr<engine> engine_;
  event_handle published_;
};

}  // namespace ferry::detail
