// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>

#include <string>
#include <vector>

namespace ferry::detail {

class sharded_rows;

/// The entry as one whose rows are spread; null for all others.
[[nodiscard]] inline const ranked_entry* as_ranked(const checkpoint_entry& entry) {
  return entry.ranks() == nullptr ? nullptr : static_cast<const ranked_entry*>(&entry);
}

/// "checkpoint::<verb> of 'a', 'b'"
[[nodiscard]] call_note note_of_checkpoint(const char* verb, const ranks_call& call);

/// A property of an object that the ranks must agree on, and its value as text.
struct agreed_property {
  std::string name;
  std::string value;
};

/// Tables and states that were made one after the other have different numbers, also if they are alike.
[[nodiscard]] agreed_property number_of(const ranked_entry& entry);
[[nodiscard]] std::string digest_text(const sharded_rows& rows);

/// Properties that a save by ranks agrees on: everything but the elements of arrays. Of numbers the value,
/// too, and of states the recorded steps.
[[nodiscard]] std::vector<agreed_property> properties_of(const checkpoint_content& content,
                                                         const std::vector<checkpoint_entry*>& objects);

/// Collective: why the ranks' properties differ, the same text on all; empty if they agree.
[[nodiscard]] std::string difference_of_ranks(collective& call,
                                              const std::vector<agreed_property>& properties);

/// Throws protocol_error on all ranks, and breaks the group, unless `difference` is empty.
void require_no_difference(const communicator& comm, const call_note& note, const std::string& difference);

/// The objects as this rank has them.
[[nodiscard]] checkpoint_content content_of_rank(const ranks_call& call);

}  // namespace ferry::detail
