// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// A thread of a host has one lane.
class lane_group {
 public:
  explicit lane_group(int) {}
  static int lanes() { return 1; }
  static int lane() { return 0; }
  template <class Value, class Join>
  [[nodiscard]] Value joined(Value value, const Join&) const {
    return value;
  }
  template <class Value, class Join>
  [[nodiscard]] static Value joined_among(int, Value value, const Join&) {
    return value;
  }
  void meet() const {}
};

struct lane_functions {
  using lane_group = host::lane_group;
};

}  // namespace ferry::host
