// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <cstdint>
#include <map>
#include <mutex>

namespace ferry::detail {

/// Where a lease is found: the file of a process, a place in it, and the number that is there while the
/// memory of the lease lives.
struct lease_name {
  std::uint64_t file = 0;
  std::uint64_t number = 0;  ///< 0: no lease
  std::int64_t place = 0;
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
};

/// The users of memory that a process shares, of all processes. An anonymous file of the process has a number
/// for each piece of memory; a user holds a lock on the number's bytes. The system drops the locks of a
/// process when that ends, however it ends. So there is no count that a killed process leaves behind, no name
/// in a folder, and a number of a process that the system gives anew does not matter. Thread-safe.
class lease_file {
 public:
  /// Makes the file. Throws bad_alloc.
  lease_file();

  /// A new lease at a place that has none. Throws bad_alloc.
  [[nodiscard]] lease_name begin(std::int64_t place);
  /// Whether anyone holds the lease.
  [[nodiscard]] bool is_held(std::int64_t place) const noexcept;
  /// Ends a lease, so that nobody gets hold of it any more; false where someone holds it.
  [[nodiscard]] bool end(std::int64_t place) noexcept;

 private:
  bool write(std::int64_t place, std::uint64_t number) noexcept;

  std::uint64_t key_;
  owned_descriptor file_;
};

/// The leases that this process holds, of one file. Thread-safe. A child of fork() shares the locks, and so
/// keeps those that this process has when it ends; it drops none.
class held_leases {
 public:
  /// Opens the file of a process. Throws invalid_argument where the process has none of that key.
  explicit held_leases(const lease_name& of);

  /// Whether these are leases of that file, held by the calling process.
  [[nodiscard]] bool serves(const lease_name& of) const noexcept {
    return of.file == key_ && process_.is_here();
  }

  /// Takes hold of a lease; each hold() needs a drop(). Throws invalid_argument where the memory or its
  /// process has ended.
  void hold(const lease_name& of);
  void drop(const lease_name& of) noexcept;

 private:
  /// Only a moment passes while the owner ends another lease of the place.
  bool lock_place(std::int64_t place);
  void drop_one(std::int64_t place) noexcept;

  std::uint64_t key_;
  process_mark process_;
  owned_descriptor file_;
  std::mutex guard_;
  std::map<std::int64_t, int> counts_;  ///< of the places that are locked
};

}  // namespace ferry::detail
