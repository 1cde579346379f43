// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/block_uses.hpp"
#include "support/manual_event.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace ferry_test::engine_test {

TEST_CASE("scratch memory of detached work goes back at once, all else when the work has ended", "[engine]") {
  const auto engine = ferry::detail::engine::get<exec_space>();
  engine->reap();
  ferry::trim();
  const auto never = [](ferry::detail::event&) { FAIL("nothing to come after"); };
  const auto work = std::make_shared<manual_event>();
  const auto owner = std::make_shared<int>(3);
  constexpr std::size_t size = 100000;
  constexpr ferry::detail::instance_id who = 1ull << 60;
  std::shared_ptr<void> scratch = engine->device_scratch(size, who, never);
  void* const block = scratch.get();
  note_use(scratch, work, who);
  scratch.reset();
  {
    auto detached = engine->take_ticket_state();
    detached->completion = work;
    detached->who = who;
    detached->resources.push_back(owner);
    engine->keep(std::move(detached));
  }
  CHECK(engine->device_scratch(size).get() != block);
  CHECK(engine->device_scratch(size, who, never).get() == block);
  engine->reap();
  CHECK(owner.use_count() == 2);
  work->end();
  engine->reap();
  CHECK(owner.use_count() == 1);
  CHECK(ferry::trim() > 0);
}

}  // namespace ferry_test::engine_test
