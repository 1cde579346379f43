// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace ferry::detail {

/// An instance on a device, for objects that may outlive Kokkos. The engine of the device drops it at
/// Kokkos::finalize. Thread-safe.
template <class Exec>
class device_instance final : public kept_instance {
 public:
  using backend = execution_backend<Exec>;

  [[nodiscard]] static std::shared_ptr<device_instance> on(int device) {
    const auto home = engine::get_on<Exec>(device);
    auto instance = std::make_shared<device_instance>(backend::template instance_on<Exec>(device));
    home->watch(instance);
    return instance;
  }
  explicit device_instance(Exec exec) : exec_(std::move(exec)) {}

  device_instance(const device_instance&) = delete;
  device_instance& operator=(const device_instance&) = delete;
  ~device_instance() override { drop(); }

  /// Kokkos leaves the device of an instance that ends current; the guard restores the thread's own.
  void drop() noexcept override {
    std::optional<Exec> last;
    {
      const std::lock_guard lock(guard_);
      last.swap(exec_);
    }
    if (!last) return;
    try {
      const typename backend::device_guard guard(*last);
      last.reset();
    } catch (...) {  // the device failed
    }
  }
  /// Throws invalid_argument after Kokkos::finalize.
  [[nodiscard]] Exec get() const {
    const std::lock_guard lock(guard_);
    if (!exec_) throw invalid_argument("ferry: Kokkos was finalized, which ends the instances of devices");
    return *exec_;
  }

 private:
  mutable std::mutex guard_;
  std::optional<Exec> exec_;
};

/// An instance for short work of ferry's own on a device: Kokkos' default instance on its device, on the
/// others one that lasts until Kokkos::finalize. Callers wait for what they enqueue on it.
template <class Exec>
Exec own_instance_on(int device) {
  using backend = execution_backend<Exec>;
  if (device < 0 || device == backend::default_device()) return Exec{};
  return engine::get_on<Exec>(device)->template own_instance<Exec>();
}

}  // namespace ferry::detail
