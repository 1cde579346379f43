// SPDX-License-Identifier: Apache-2.0
// A batch has arrays.
// expected-error: made_by needs a batch_field for each array of a batch
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <span>

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  [[maybe_unused]] const auto nothing = [](const ferry::batch_request&) {};
  [[maybe_unused]] const auto function = [](const ferry::batch_request&, std::span<float>) {};
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::made_by(10, function, ferry::batch_field<float>("x")));
#else
  static_cast<void>(ferry::made_by(10, nothing));
#endif
}
