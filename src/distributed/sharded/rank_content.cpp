// SPDX-License-Identifier: Apache-2.0
#include "rank_content.hpp"

#include <ferry/io/detail/checkpoint_entry.hpp>
#include "sharded_rows.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {

namespace {

std::string entry_words(const std::string& name) { return "entry '" + name + "'"; }

/// The elements of an array in host memory that the host made for this save.
std::uint64_t digest_of_bytes(const checkpoint_array& array) {
  const std::size_t bytes = static_cast<std::size_t>(array.schema.bytes());
  return call_note(std::string_view(reinterpret_cast<const char*>(array.data), bytes)).digest;
}

/// Variables and recorded steps are those of all ranks: the file has them once.
bool is_compared(const manifest_entry& entry, const manifest_array& schema) {
  return entry.kind == "value" || entry.kind == "text" || entry.kind == "struct" || entry.kind == "random" ||
         schema.name == "history";
}

/// A number as it is, and the digest of everything else.
std::string value_of(const manifest_entry& entry, const checkpoint_array& array) {
  if (entry.kind != "value") return "of digest " + std::to_string(digest_of_bytes(array));
  return element_words(array.schema.dtype, std::span<const std::byte>(array.data, array.schema.bytes()));
}

/// The properties as bytes for other ranks; texts have no byte 0.
std::string packed(const std::vector<agreed_property>& properties) {
  std::string packed_text;
  for (const auto& property : properties) {
    packed_text.append(property.name).push_back('\0');
    packed_text.append(property.value).push_back('\0');
  }
  return packed_text;
}

std::vector<agreed_property> unpacked(std::string_view packed_text) {
  std::vector<agreed_property> properties;
  const auto next = [&] {
    const auto end = packed_text.find('\0');
    std::string text(packed_text.substr(0, end));
    packed_text.remove_prefix(end + 1);
    return text;
  };
  while (!packed_text.empty()) {
    auto& property = properties.emplace_back();
    property.name = next();
    property.value = next();
  }
  return properties;
}

}  // namespace

call_note note_of_checkpoint(const char* verb, const ranks_call& call) {
  call_note note("checkpoint::");
  note.add(verb).add(" of ");
  const char* before = "'";
  for (const auto* entry : call.entries) {
    note.add(before).add(entry->name());
    before = "', '";
  }
  return note.add("'");
}

agreed_property number_of(const ranked_entry& entry) {
  return {entry_words(entry.name()) + ": the object", "number " + std::to_string(entry.number())};
}
std::string digest_text(const sharded_rows& rows) {
  return "of digest " + std::to_string(rows.spread().digest());
}

std::vector<agreed_property> properties_of(const checkpoint_content& content,
                                           const std::vector<checkpoint_entry*>& objects) {
  std::vector<agreed_property> properties;
  std::size_t i = 0, place = 0;
  for (const auto& entry : content.entries) {
    const std::string owner = entry_words(entry.name);
    properties.push_back({owner, "of kind '" + entry.kind + "'"});
    if (const auto* ranked = as_ranked(*objects[place++])) properties.push_back(number_of(*ranked));
    for (const auto& fact : entry.facts) properties.push_back({owner + ": " + fact.name, fact.describe()});
    for (const auto& schema : entry.arrays) {
      const checkpoint_array& array = content.arrays[i++];
      const std::string part = owner + ": " + (schema.name.empty() ? "the array" : schema.name);
      properties.push_back({part, schema.describe()});
      if (const auto* rows = rows_of_shards(array))
        properties.push_back({part + ", sharding", digest_text(*rows)});
      else if (array.data != nullptr && is_compared(entry, schema))
        properties.push_back({part + ", value", value_of(entry, array)});
    }
  }
  return properties;
}

std::string difference_of_ranks(collective& call, const std::vector<agreed_property>& properties) {
  const std::string bytes = packed(properties);
  const std::array<std::uint64_t, 2> digest{call_note(bytes).digest, bytes.size()};
  const auto digests = call.all_gather(std::span<const std::uint64_t>(digest));
  const auto ranks = static_cast<std::size_t>(call.ranks());
  std::size_t rank = 1;
  while (rank < ranks && digests[2 * rank] == digests[0] && digests[2 * rank + 1] == digests[1]) ++rank;
  if (rank >= ranks) return {};
  std::vector<std::string> arrived(ranks);
  std::vector<outgoing_part> outgoing(ranks,
                                      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  std::vector<incoming_part> incoming(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    arrived[r].resize(static_cast<std::size_t>(digests[2 * r + 1]));
    incoming[r] = {reinterpret_cast<std::byte*>(arrived[r].data()), arrived[r].size()};
  }
  call.exchange(outgoing, incoming);
  const auto first = unpacked(arrived[0]), second = unpacked(arrived[rank]);
  std::size_t i = 0;
  while (i < first.size() && i < second.size() && first[i].name == second[i].name &&
         first[i].value == second[i].value)
    ++i;
  const auto words_of = [&](std::size_t r, const std::vector<agreed_property>& facts) {
    const std::string who = "rank " + std::to_string(r) + " has ";
    return i < facts.size() ? who + facts[i].name + " " + facts[i].value : who + "no more";
  };
  return words_of(0, first) + ", " + words_of(rank, second);
}

void require_no_difference(const communicator& comm, const call_note& note, const std::string& difference) {
  if (difference.empty()) return;
  try {
    collective call(comm, call_note(note).add_hidden(note_part::content, comm.rank()));
    call.agree();
  } catch (const protocol_error&) {
    throw protocol_error("ferry::io::" + std::string(note.words()) + ": the ranks differ: " + difference);
  }
}

checkpoint_content content_of_rank(const ranks_call& call) {
  checkpoint_content content;
  for (const auto* entry : call.entries) {
    manifest_entry& described = content.entries.emplace_back();
    described.name = entry->name();
    entry->describe(described, content.arrays);
  }
  for (const auto& array : content.arrays)
    if (array.accesses != nullptr) array.accesses->wait_for_writes();
  return content;
}

}  // namespace ferry::detail
