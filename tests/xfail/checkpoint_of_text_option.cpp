// SPDX-License-Identifier: Apache-2.0
// A transform with an option that is no number.
// expected-error: a checkpoint saves options that are numbers or std::arrays of them
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <string>

struct named_scale {
  static constexpr std::string_view name = "named_scale";
  double scale = 1.0;
#ifndef FERRY_XFAIL_FIXED
  std::string remark = {};
#endif
  template <class Compute>
  [[nodiscard]] auto device_part() const {
    return ferry::optim::grad_scale{scale}.device_part<Compute>();
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const {}
};

void refused(ferry::io::checkpoint& run) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::optim::chain optimizer{ferry::optim::sgd{}, named_scale{}};
  auto state = ferry::optim::make_state(optimizer, table);
  run.add("sgd", optimizer, state);
}
