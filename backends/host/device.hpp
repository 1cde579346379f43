// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// The host is one device, which is always current.
class device_guard {
 public:
  template <class Exec>
  explicit device_guard(const Exec&) {}
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  ~device_guard() = default;
};

struct device_functions {
  using device_guard = host::device_guard;

  template <class Exec>
  static constexpr int device_of(const Exec&) {
    return 0;
  }
};

}  // namespace ferry::host
