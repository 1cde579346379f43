// SPDX-License-Identifier: Apache-2.0
// A transform with more options than are counted.
// expected-error: a checkpoint saves rules and transforms of at most 12 options
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

struct many_scales {
  static constexpr std::string_view name = "many_scales";
  double a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1;
#ifndef FERRY_XFAIL_FIXED
  double m = 1;
#endif
  template <class Compute>
  [[nodiscard]] auto device_part() const {
    return ferry::optim::grad_scale{a}.device_part<Compute>();
  }
  template <class Check>
  void for_each_array(const Check&) const {}
  void check() const {}
};

void refused(ferry::io::checkpoint& run) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  ferry::optim::chain optimizer{ferry::optim::sgd{}, many_scales{}};
  auto state = ferry::optim::make_state(optimizer, table);
  run.add("sgd", optimizer, state);
}
