// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/communicator/detail/collective.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace ferry::detail {

collective::collective(const communicator& comm, const call_note& note)
    : group_(comm.group()), rank_(comm.acting_rank()), note_(note) {}

void collective::all_gather_bytes(std::span<const std::byte> part, std::byte* parts) {
  phase([&](const call_note& note) { group_->all_gather(rank_, note, part, parts); });
}

void collective::agree() {
  if (!is_whole()) agree_on_bytes({}, nullptr);
}

void collective::agree_on_bytes(std::span<const std::byte> mine, std::byte* theirs) {
  phase([&](const call_note& note) {
    if (reads_)
      group_->end_reads(rank_, note, nullptr, mine, theirs);
    else
      group_->all_gather(rank_, note, mine, theirs);
  });
}

std::uint64_t collective::next_number() {
  std::uint64_t number = 0;
  for (int r = first(); r < last(); ++r) number = group_->next_number(r);
  return number;
}

void collective::close() noexcept {
  open_ = false;
  // A phase that succeeded in this call: no rank is in an earlier one any more.
  if (phases_ == 0) return;
  if (const auto& lanes = group_->lanes(); lanes != nullptr) lanes->end_reads();
}

void collective::exchange(std::span<const outgoing_part> outgoing, std::span<const incoming_part> incoming) {
  phase([&](const call_note& note) { group_->exchange(rank_, note, outgoing, incoming); });
}

void collective::exchange_devices(std::span<const outgoing_part> outgoing,
                                  std::span<const incoming_part> incoming, device_lane& lane) {
  phase([&](const call_note& note) { group_->exchange_devices(rank_, note, outgoing, incoming, lane); });
}

void collective::phase(function_ref<void(const call_note&)> act) {
  const call_note note = call_note(note_).add(", exchange").add_number(phases_++);
  open_ = false;
  act(note);
  open_ = true;
}

void collective::tell() noexcept {
  if (!open_ || is_whole()) return;
  open_ = false;
  try {
    with_message_of(std::current_exception(), [this](const char* message) {
      const call_note note = call_note(note_).add(", exchange").add_number(phases_);
      if (reads_)
        group_->end_reads(rank_, note, message, {}, nullptr);
      else
        group_->fail(rank_, note, message);
    });
  } catch (...) {  // the group is broken, so the others know
  }
}

}  // namespace ferry::detail
