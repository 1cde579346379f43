// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/shared_memory.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

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

inline std::uint64_t random_number() {
  std::random_device random;
  return ((static_cast<std::uint64_t>(random()) << 32) ^ random()) | 1;
}

/// The users of memory that a process shares, of all processes. An anonymous file of the process has a number
/// for each piece of memory; a user holds a lock on the number's bytes. The system drops the locks of a
/// process when that ends, however it ends. So there is no count that a killed process leaves behind, no name
/// in a folder, and a number of a process that the system gives anew does not matter. Thread-safe.
class lease_file {
 public:
  /// Makes the file. Throws bad_alloc.
  lease_file() : key_(random_number()) {
    char name[40];
    std::snprintf(name, sizeof name, "ferry.leases.%016" PRIx64, key_);
    file_ = owned_descriptor(::memfd_create(name, MFD_CLOEXEC));
    if (file_.get() < 0)
      throw bad_alloc(std::string("ferry::share: no file for the users of shared memory: ") +
                      std::strerror(errno));
  }

  /// A new lease at a place that has none. Throws bad_alloc.
  [[nodiscard]] lease_name begin(std::int64_t place) {
    const lease_name made{key_, random_number(), place, static_cast<std::int32_t>(::getpid()), file_.get()};
    if (!write(place, made.number))
      throw bad_alloc(std::string("ferry::share: no place for the users of shared memory: ") +
                      std::strerror(errno));
    return made;
  }
  /// Whether anyone holds the lease.
  [[nodiscard]] bool is_held(std::int64_t place) const noexcept {
    struct flock range = range_of(place, F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
  }
  /// Ends a lease, so that nobody gets hold of it any more; false where someone holds it.
  [[nodiscard]] bool end(std::int64_t place) noexcept {
    struct flock range = range_of(place, F_WRLCK);
    if (::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) return false;
    const bool ended = write(place, 0);
    range.l_type = F_UNLCK;
    ::fcntl(file_.get(), F_OFD_SETLK, &range);
    return ended;
  }

  static struct flock range_of(std::int64_t place, short kind) noexcept {
    struct flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(place) * static_cast<off_t>(sizeof(std::uint64_t));
    range.l_len = static_cast<off_t>(sizeof(std::uint64_t));
    return range;
  }

 private:
  bool write(std::int64_t place, std::uint64_t number) noexcept {
    return ::pwrite(file_.get(), &number, sizeof number, range_of(place, F_UNLCK).l_start) ==
           static_cast<ssize_t>(sizeof number);
  }

  std::uint64_t key_;
  owned_descriptor file_;
};

/// The leases that this process holds, of one file. Thread-safe. A child of fork() shares the locks, and so
/// keeps those that this process has when it ends; it drops none.
class held_leases {
 public:
  /// Opens the file of a process. Throws invalid_argument where the process has none of that key.
  explicit held_leases(const lease_name& of) : key_(of.file) {
    require(of);
    file_ = owned_descriptor(::open(path_of(of).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    require(of);
    if (file_.get() < 0)
      throw invalid_argument("this process can't open the leases of process " + std::to_string(of.process) +
                             ": " + std::strerror(errno));
  }

  /// Whether these are leases of that file, held by the calling process.
  [[nodiscard]] bool serves(const lease_name& of) const noexcept {
    return of.file == key_ && process_.is_here();
  }

  /// Takes hold of a lease; each hold() needs a drop(). Throws invalid_argument where the memory or its
  /// process has ended.
  void hold(const lease_name& of) {
    require(of);
    const std::lock_guard lock(guard_);
    int& count = counts_[of.place];
    if (count == 0 && !lock_place(of.place)) {
      counts_.erase(of.place);
      throw invalid_argument("process " + std::to_string(of.process) +
                             " does not let go of the lease: " + std::strerror(errno));
    }
    ++count;
    std::uint64_t there = 0;
    if (::pread(file_.get(), &there, sizeof there, lease_file::range_of(of.place, F_UNLCK).l_start) ==
            static_cast<ssize_t>(sizeof there) &&
        there == of.number)
      return;
    drop_one(of.place);
    throw invalid_argument("the tensor has ended in process " + std::to_string(of.process));
  }
  void drop(const lease_name& of) noexcept {
    const std::lock_guard lock(guard_);
    drop_one(of.place);
  }

 private:
  /// Only a moment passes while the owner ends another lease of the place.
  bool lock_place(std::int64_t place) {
    using clock = std::chrono::steady_clock;
    for (const auto until = clock::now() + std::chrono::seconds(5);;) {
      struct flock range = lease_file::range_of(place, F_RDLCK);
      if (::fcntl(file_.get(), F_OFD_SETLK, &range) == 0) return true;
      if (clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void drop_one(std::int64_t place) noexcept {
    const auto found = counts_.find(place);
    if (found == counts_.end() || --found->second > 0) return;
    counts_.erase(found);
    if (!process_.is_here()) return;
    struct flock range = lease_file::range_of(place, F_UNLCK);
    ::fcntl(file_.get(), F_OFD_SETLK, &range);
  }

  static std::string path_of(const lease_name& of) {
    return "/proc/" + std::to_string(of.process) + "/fd/" + std::to_string(of.descriptor);
  }
  /// The descriptor's name has the key, so a process that has got the number of one that ended is not taken
  /// for that.
  static void require(const lease_name& of) {
    char expected[64], found[64] = "";
    const int length = std::snprintf(expected, sizeof expected, "/memfd:ferry.leases.%016" PRIx64, of.file);
    const ssize_t count = ::readlink(path_of(of).c_str(), found, sizeof found);
    if (count >= length && std::memcmp(found, expected, static_cast<std::size_t>(length)) == 0) return;
    throw invalid_argument("process " + std::to_string(of.process) +
                           ", which shared it, has ended or is of another user");
  }

  std::uint64_t key_;
  process_mark process_;
  owned_descriptor file_;
  std::mutex guard_;
  std::map<std::int64_t, int> counts_;  ///< of the places that are locked
};

}  // namespace ferry::detail
