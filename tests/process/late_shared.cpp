// SPDX-License-Identifier: Apache-2.0
// Shared memory at Kokkos::finalize and after it: freed where nobody uses it, else left to the end of the process.
#include "../support/forked.hpp"
#include "../support/process_space.hpp"
#include "check.hpp"

#include <ferry/distributed/shared/share.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <optional>

namespace {

using ferry_test::forked;
using ferry_test::process_space;
using tensor = ferry::tensor<float, process_space>;

bool is_whole(const tensor& array) {
  for (std::size_t i = 0; i < array.size(); ++i)
    if (array.data()[i] != 3) return false;
  return true;
}

/// A process that shares a tensor, which ends before Kokkos does or after it; and this one, which uses it. The
/// user ends before Kokkos, before the late tensor, or after that.
void share_late(bool ends_late, int user_ends) {
  forked owner([&](forked& self) {
    std::optional<tensor> late;
    {
      const Kokkos::ScopeGuard kokkos;
      tensor source("own", 10, 4);
      for (std::size_t i = 0; i < source.size(); ++i) source.data()[i] = 3;
      self.say(ferry::share(source));
      self.await();
      if (ends_late) late.emplace(std::move(source));
      source = tensor();
      self.say();
      self.await();
    }
    const bool intact = process_space::freed == 0;
    self.say();
    self.await();
    late.reset();
    const bool kept_late = process_space::freed == 0;
    self.say();
    self.await();
    if (intact != (ends_late || user_ends > 0)) return false;
    return kept_late == (ends_late ? user_ends > 1 : user_ends > 0);
  });
  std::optional<tensor> user(ferry::open_shared<float, process_space>(owner.hear<ferry::shared_handle>()));
  FERRY_TEST_CHECK(is_whole(*user));
  for (int step = 0; step < 3; ++step) {
    owner.answer();
    owner.hear();
    FERRY_TEST_CHECK(!user || is_whole(*user));
    if (step == user_ends) user.reset();
  }
  owner.answer();
  FERRY_TEST_CHECK(owner.ended_well());
}

}  // namespace

int main() {
  for (const bool ends_late : {false, true})
    for (const int user_ends : {0, 1, 2}) share_late(ends_late, user_ends);
  return failures == 0 ? 0 : 1;
}
