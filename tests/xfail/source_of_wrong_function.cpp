// SPDX-License-Identifier: Apache-2.0
// The function takes a span for each field.
// expected-error: the function of made_by must be callable, as const, with a batch_request and a span for each field
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <span>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] const auto function = [](const ferry::batch_request&, std::span<float>) {};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::made_by(10, function, ferry::batch_field<float>("x")));
#else
  static_cast<void>(ferry::made_by(10, function, ferry::batch_field<double>("x")));
#endif
}
