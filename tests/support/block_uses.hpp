// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>

#include <memory>
#include <utility>

namespace ferry_test {

/// Notes that work of instance `who` uses the block of a lease until `done`, as a verb does; null: it has
/// ended. False where `resource` is no lease.
inline bool note_use(const std::shared_ptr<void>& resource, ferry::detail::event_handle end,
                     ferry::detail::instance_id who) {
  ferry::detail::used_object* const block = ferry::detail::block_of_lease(resource);
  if (block == nullptr) return false;
  block->promise();
  block->record(true, std::move(end), who);
  return true;
}

/// Notes the use, then drops the lease.
inline bool release_after(std::shared_ptr<void>& resource, ferry::detail::event_handle end,
                          ferry::detail::instance_id who) {
  if (!note_use(resource, std::move(end), who)) return false;
  resource.reset();
  return true;
}

}  // namespace ferry_test
