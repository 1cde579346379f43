// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/device.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <vector>

namespace ferry::detail {

template <class Exec>
class device_instance;

/// The devices of the ranks of a group, with an instance for each rank. Kokkos::finalize ends the instances.
class rank_devices {
 public:
  using exec_space = Kokkos::DefaultExecutionSpace;

  /// Makes the instances. Throws invalid_argument for a device that there is none of.
  explicit rank_devices(const std::vector<int>& ids);
  rank_devices(const rank_devices&) = delete;
  rank_devices& operator=(const rank_devices&) = delete;
  ~rank_devices();

  [[nodiscard]] device of(int rank) const;
  [[nodiscard]] exec_space instance(int rank) const;

 private:
  std::vector<int> ids_;
  std::vector<std::shared_ptr<device_instance<exec_space>>> instances_;
};

}  // namespace ferry::detail
