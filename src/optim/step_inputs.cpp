// SPDX-License-Identifier: Apache-2.0
#include <ferry/optim/detail/step_inputs.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/transfer.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace ferry::detail {

template <ExecutionSpace Exec>
std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<Exec>& of,
                                                               const optim::detail::table_view& table) {
  auto& there = *table.on_device;
  const device here{of.device()};
  // Memory is taken and released without the lock: a user's allocation callback may need it.
  std::byte* packed = nullptr;
  std::size_t room = 0;
  for (std::shared_ptr<tensor<std::byte, device_space>> longer;;) {
    std::unique_lock lock(there.guard);
    if (longer != nullptr && (there.memory == nullptr || there.memory->size() < longer->size() ||
                              there.memory->device() != here)) {
      std::swap(there.memory, longer);  // verbs in flight keep the old one
      there.sent = 0;
    }
    const bool fits =
        there.memory != nullptr && there.memory->size() >= table.bytes && there.memory->device() == here;
    if (fits && there.sent >= table.bytes) return there.memory;
    const std::size_t lacking = table.bytes - (fits ? there.sent : 0);
    if (fits && lacking <= room) {
      const std::byte* from = table.entries.get() + there.sent;
      std::memcpy(packed, from, lacking);
      using backend = execution_backend<Exec>;
      auto& accesses = *there.memory->accesses();
      for (const auto& each : accesses.before_write(of.id())) backend::wait_for(of.exec(), *each);
      transfer(of.exec(), "ferry::step::updates", there.memory->data() + there.sent, device_space::name,
               packed, pinned_space::name, static_cast<std::int64_t>(lacking));
      const auto order = engine::get(of.exec())->lock_order();
      accesses.add_write(of.mark(), of.id());
      there.sent = table.bytes;
      return there.memory;
    }
    lock.unlock();
    if (!fits)
      longer = std::make_shared<tensor<std::byte, device_space>>(
          "updates", here, std::max<std::size_t>(2 * table.bytes, 4096));
    if (lacking > room) {
      packed = of.template pinned<std::byte>(static_cast<std::int64_t>(lacking));
      room = lacking;
    }
  }
}
void refuse_counting_capture(const char* verb) {
  throw invalid_argument("ferry::" + std::string(verb) + ": the instance is being captured into a graph, " +
                         std::string(counts_each_step));
}

#define FERRY_UPLOADS_OF(EXEC)                                                                   \
  template std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<EXEC>&, \
                                                                          const optim::detail::table_view&);
FERRY_FOR_DEVICE_EXECUTION_SPACES(FERRY_UPLOADS_OF)
#undef FERRY_UPLOADS_OF

}  // namespace ferry::detail
