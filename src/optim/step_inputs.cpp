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
std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<Exec>& call,
                                                               const optim::detail::table_view& table) {
  auto& copy = *table.on_device;
  const device device_of_call{call.device()};
  // Memory is taken and released without the lock: a user's allocation callback may need it.
  std::byte* packed = nullptr;
  std::size_t room = 0;
  for (std::shared_ptr<tensor<std::byte, device_space>> longer;;) {
    std::unique_lock lock(copy.guard);
    if (longer != nullptr && (copy.memory == nullptr || copy.memory->size() < longer->size() ||
                              copy.memory->device() != device_of_call)) {
      std::swap(copy.memory, longer);  // verbs in flight keep the old one
      copy.sent = 0;
    }
    const bool fits = copy.memory != nullptr && copy.memory->size() >= table.bytes &&
                      copy.memory->device() == device_of_call;
    if (fits && copy.sent >= table.bytes) return copy.memory;
    const std::size_t lacking = table.bytes - (fits ? copy.sent : 0);
    if (fits && lacking <= room) {
      const std::byte* entries = table.entries.get() + copy.sent;
      std::memcpy(packed, entries, lacking);
      using backend = execution_backend<Exec>;
      auto& accesses = *copy.memory->accesses();
      for (const auto& event : accesses.before_write(call.id())) backend::wait_for(call.exec(), *event);
      transfer(call.exec(), "ferry::step::updates", copy.memory->data() + copy.sent, device_space::name,
               packed, pinned_space::name, static_cast<std::int64_t>(lacking));
      const auto order = engine::get(call.exec())->lock_order();
      accesses.add_write(call.mark(), call.id());
      copy.sent = table.bytes;
      return copy.memory;
    }
    lock.unlock();
    if (!fits)
      longer = std::make_shared<tensor<std::byte, device_space>>(
          "updates", device_of_call, std::max<std::size_t>(2 * table.bytes, 4096));
    if (lacking > room) {
      packed = call.template pinned<std::byte>(static_cast<std::int64_t>(lacking));
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
