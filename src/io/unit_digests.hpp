// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#define XXH_INLINE_ALL  // no program has to link it
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

static_assert(XXH_VERSION_NUMBER >= 800,
              "ferry: digests of checkpoints need xxHash 0.8, from which on XXH3 stays as it is.");

namespace ferry::detail {

/// 128 bits that differ if the bytes of units do.
struct unit_digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  [[nodiscard]] bool operator==(const unit_digest&) const = default;
};

/// The function that makes digests: those of two functions can't be compared. A file holds the numbers.
enum class digest_kind : std::uint64_t { none = 0, xxh3 = 1, by_device = 2 };

/// The digests of an array's units, in their order.
struct array_digests {
  digest_kind kind = digest_kind::none;
  std::vector<unit_digest> units;
};

/// XXH3 of 128 bits.
inline unit_digest digest_of(const std::byte* data, std::size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

/// The bytes of the file before the arrays: its format, and the manifest that it belongs to.
inline std::string digests_header(const manifest& content) {
  constexpr std::uint64_t version = 1;
  const std::string bytes = encode(content);
  const unit_digest owner = digest_of(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  std::string header(digests_magic);
  header.append(reinterpret_cast<const char*>(&version), sizeof version);
  return header.append(reinterpret_cast<const char*>(&owner), sizeof owner);
}

/// Writes the digests of a manifest's arrays, in its order, into a file of their own. They hold if the manifest
/// becomes the newest generation of the folder.
inline void write_digests(const std::string& folder, const manifest& content,
                          const std::vector<array_digests>& arrays) {
  std::string bytes = digests_header(content);
  const auto append = [&](const void* data, std::size_t count) {
    bytes.append(static_cast<const char*>(data), count);
  };
  for (const auto& array : arrays) {
    append(&array.kind, sizeof array.kind);
    append(array.units.data(), array.units.size() * sizeof(unit_digest));
  }
  const std::uint32_t checksum = crc32c(bytes.data(), bytes.size());
  append(&checksum, sizeof checksum);
  write_whole(digests_path(folder, content.number), bytes, folder);
}

/// Reads the digests of a manifest of the folder; none if they are missing, damaged, or another manifest's.
inline std::vector<array_digests> read_digests(const std::string& folder, const manifest& content) {
  const std::string header = digests_header(content);
  std::uint64_t expected = header.size() + sizeof(std::uint32_t);
  for (const auto& entry : content.entries)
    for (const auto& array : entry.arrays)
      expected += sizeof(digest_kind) + array.unit_count() * sizeof(unit_digest);
  std::vector<array_digests> arrays;
  try {
    const file source = file::open_to_read("checkpoint", digests_path(folder, content.number));
    if (source.size() != expected) return {};
    std::string bytes(static_cast<std::size_t>(expected), '\0');
    source.read_at(bytes.data(), bytes.size(), 0);
    std::size_t next = header.size();
    const auto take = [&](void* target, std::size_t count) {
      std::memcpy(target, bytes.data() + next, count);
      next += count;
    };
    for (const auto& entry : content.entries)
      for (const auto& array : entry.arrays) {
        auto& digests = arrays.emplace_back();
        digests.units.resize(static_cast<std::size_t>(array.unit_count()));
        take(&digests.kind, sizeof digests.kind);
        take(digests.units.data(), digests.units.size() * sizeof(unit_digest));
      }
    std::uint32_t checksum = 0;
    take(&checksum, sizeof checksum);
    if (!bytes.starts_with(header) || checksum != crc32c(bytes.data(), bytes.size() - sizeof checksum))
      return {};
  } catch (const io_error&) {
    return {};
  }
  return arrays;
}

}  // namespace ferry::detail

namespace ferry::kernels {

/// Adds the words of units to their digests: each iteration one lane's words of a unit, so neighbours read
/// neighbouring words. A digest is the sum of its words, each mixed with its offset by two functions: sums are
/// equal in any order.
struct digest_units {
  static constexpr std::int64_t lanes = 32, word_bytes = 8;

  const unsigned char* data;
  std::int64_t bytes;
  std::int64_t unit;
  detail::unit_digest* digests;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t begin = i / lanes * unit, end = begin + unit < bytes ? begin + unit : bytes;
    detail::unit_digest sum;
    for (std::int64_t offset = i % lanes * word_bytes; begin + offset < end; offset += lanes * word_bytes) {
      const auto key = static_cast<std::uint64_t>(offset + word_bytes);
      const std::uint64_t first = mixed(word_at(begin + offset, end) ^ key * 0x9e3779b97f4a7c15u);
      sum.low += first;
      sum.high += mixed(first + key * 0xd6e8feb86659fd93u);
    }
    Kokkos::atomic_add(&digests[i / lanes].low, sum.low);
    Kokkos::atomic_add(&digests[i / lanes].high, sum.high);
  }

 private:
  /// Missing bytes of the last word are zeros.
  KOKKOS_FUNCTION std::uint64_t word_at(std::int64_t offset, std::int64_t end) const {
    const unsigned char* const first = data + offset;
    if (offset + word_bytes <= end && reinterpret_cast<std::uintptr_t>(first) % word_bytes == 0)
      return *reinterpret_cast<const std::uint64_t*>(first);
    std::uint64_t word = 0;
    for (int i = 0; i < word_bytes && offset + i < end; ++i) word |= std::uint64_t{first[i]} << (8 * i);
    return word;
  }
  /// The last steps of MurmurHash3: one to one, and each bit of the result depends on all bits.
  KOKKOS_FUNCTION static std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdu;
    bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53u;
    return bits ^ (bits >> 33);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Digests of an array in the memory of Exec's default device, by that device: `digests` has room for all
/// units. False if the array's bytes do not lie there one after the other. Blocks.
template <class Exec>
bool digest_on_device(const checkpoint_array& array, std::vector<unit_digest>& digests) {
  using backend = execution_backend<Exec>;
  using memory = device_backend<device_space>;
  const Exec exec;
  if (array.read_device == nullptr || !array.is_dense() || array.accesses == nullptr ||
      array.accesses->device() != backend::device_of(exec))
    return false;
  static const std::string label = "ferry::checkpoint::digests";
  constexpr std::size_t most = std::size_t{1} << 16;
  const typename backend::device_guard guard(exec);  // Kokkos leaves its own device current
  const auto side = engine::get(exec)->side_stream(exec);
  tensor<unit_digest, device_space> part("checkpoint::digests", std::min(most, digests.size()));
  for (std::size_t first = 0; first < digests.size(); first += most) {
    const std::size_t count = std::min(most, digests.size() - first), begin = first * array.schema.unit_bytes;
    memory::write(part.data(), digests.data() + first, count * sizeof(unit_digest));  // zeros
    const kernels::digest_units kernel{reinterpret_cast<const unsigned char*>(array.data) + begin,
                                       static_cast<std::int64_t>(array.schema.bytes() - begin),
                                       std::int64_t{array.schema.unit_bytes}, part.data()};
    launch(*side, label, static_cast<std::int64_t>(count) * kernel.lanes, kernel);
    backend::fence(*side, label);
    memory::read(digests.data() + first, part.data(), count * sizeof(unit_digest));
  }
  return true;
}

}  // namespace ferry::detail
