// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/device_instance.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The devices of the ranks of a group.
class rank_devices {
 public:
  explicit rank_devices(std::vector<int> ids) : ids_(std::move(ids)) {}
  rank_devices(const rank_devices&) = delete;
  rank_devices& operator=(const rank_devices&) = delete;
  virtual ~rank_devices() = default;

  [[nodiscard]] device of(int rank) const { return {ids_.at(static_cast<std::size_t>(rank))}; }

 protected:
  std::vector<int> ids_;
};

/// The devices of the ranks, with an instance for each rank. Kokkos::finalize ends the instances.
template <class Exec>
class rank_instances final : public rank_devices {
 public:
  /// Makes the instances. Throws invalid_argument for a device that there is none of.
  explicit rank_instances(std::vector<int> ids) : rank_devices(std::move(ids)) {
    for (const int id : ids_) require(id);
    for (const int id : ids_) instances_.push_back(device_instance<Exec>::on(id));
  }
  [[nodiscard]] Exec instance(int rank) const { return instances_.at(static_cast<std::size_t>(rank))->get(); }

 private:
  using backend = execution_backend<Exec>;

  static void require(int id) {
    const int count = backend::device_count();
    if (id >= 0 && id < count) return;
    std::string known;
    for (int each = 0; each < count; ++each)
      known.append(each == 0 ? "" : ", ")
          .append(std::to_string(each))
          .append(" (")
          .append(backend::summary_of(each).name)
          .append(")");
    throw invalid_argument("ferry::communicator::devices: there is no device " + std::to_string(id) +
                           "; ferry::devices() lists " + (known.empty() ? "none" : known));
  }

  std::vector<std::shared_ptr<device_instance<Exec>>> instances_;
};

}  // namespace ferry::detail
