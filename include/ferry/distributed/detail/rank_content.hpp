// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/call_note.hpp>
#include <ferry/distributed/detail/sharded_rows.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/manifest_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry::detail {

/// What the ranks must agree on: everything but the elements of arrays. Of numbers the value, too.
template <class...>
std::uint64_t digest_of_content(const checkpoint_content& content) {
  std::string all = encode(manifest{0, {}, content.entries});
  std::size_t i = 0;
  for (const auto& entry : content.entries)
    for (std::size_t k = 0; k < entry.arrays.size(); ++k, ++i) {
      const checkpoint_array& array = content.arrays[i];
      if (const auto* rows = rows_of_shards(array)) all += std::to_string(rows->spread().digest());
      if (entry.kind == "value") all.append(reinterpret_cast<const char*>(array.data), array.row_bytes);
    }
  return call_note(all).digest;
}

/// The objects as this rank has them.
template <class...>
checkpoint_content content_of_rank(const ranks_call& of) {
  checkpoint_content made;
  for (const auto* each : of.entries) {
    manifest_entry& to = made.entries.emplace_back();
    to.name = each->name();
    each->describe(to, made.arrays);
  }
  for (const auto& each : made.arrays)
    if (each.accesses != nullptr) each.accesses->wait_for_writes();
  return made;
}

}  // namespace ferry::detail
