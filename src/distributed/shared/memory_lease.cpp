// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/memory_lease.hpp>

#include "random_number.hpp"

#include <ferry/error.hpp>

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
#include <mutex>
#include <string>
#include <thread>

namespace ferry::detail {

namespace {

struct flock range_of(std::int64_t place, short kind) noexcept {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(place) * static_cast<off_t>(sizeof(std::uint64_t));
  range.l_len = static_cast<off_t>(sizeof(std::uint64_t));
  return range;
}

std::string path_of(const lease_name& of) {
  return "/proc/" + std::to_string(of.process) + "/fd/" + std::to_string(of.descriptor);
}
/// The descriptor's name has the key, so a process that has got the number of one that ended is not taken
/// for that.
void require_lease_file(const lease_name& of) {
  char expected[64], found[64] = "";
  const int length = std::snprintf(expected, sizeof expected, "/memfd:ferry.leases.%016" PRIx64, of.file);
  const ssize_t count = ::readlink(path_of(of).c_str(), found, sizeof found);
  if (count >= length && std::memcmp(found, expected, static_cast<std::size_t>(length)) == 0) return;
  throw invalid_argument("process " + std::to_string(of.process) +
                         ", which shared it, has ended or is of another user");
}

}  // namespace

lease_file::lease_file() : key_(random_number()) {
  char name[40];
  std::snprintf(name, sizeof name, "ferry.leases.%016" PRIx64, key_);
  file_ = owned_descriptor(::memfd_create(name, MFD_CLOEXEC));
  if (file_.get() < 0)
    throw bad_alloc(std::string("ferry::share: no file for the users of shared memory: ") +
                    std::strerror(errno));
}

lease_name lease_file::begin(std::int64_t place) {
  const lease_name made{key_, random_number(), place, static_cast<std::int32_t>(::getpid()), file_.get()};
  if (!write(place, made.number))
    throw bad_alloc(std::string("ferry::share: no place for the users of shared memory: ") +
                    std::strerror(errno));
  return made;
}

bool lease_file::is_held(std::int64_t place) const noexcept {
  struct flock range = range_of(place, F_WRLCK);
  return ::fcntl(file_.get(), F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

bool lease_file::end(std::int64_t place) noexcept {
  struct flock range = range_of(place, F_WRLCK);
  if (::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) return false;
  const bool ended = write(place, 0);
  range.l_type = F_UNLCK;
  ::fcntl(file_.get(), F_OFD_SETLK, &range);
  return ended;
}

bool lease_file::write(std::int64_t place, std::uint64_t number) noexcept {
  return ::pwrite(file_.get(), &number, sizeof number, range_of(place, F_UNLCK).l_start) ==
         static_cast<ssize_t>(sizeof number);
}

held_leases::held_leases(const lease_name& of) : key_(of.file) {
  require_lease_file(of);
  file_ = owned_descriptor(::open(path_of(of).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  require_lease_file(of);
  if (file_.get() < 0)
    throw invalid_argument("this process can't open the leases of process " + std::to_string(of.process) +
                           ": " + std::strerror(errno));
}

void held_leases::hold(const lease_name& of) {
  require_lease_file(of);
  const std::lock_guard lock(guard_);
  int& count = counts_[of.place];
  if (count == 0 && !lock_place(of.place)) {
    counts_.erase(of.place);
    throw invalid_argument("process " + std::to_string(of.process) +
                           " does not let go of the lease: " + std::strerror(errno));
  }
  ++count;
  std::uint64_t there = 0;
  if (::pread(file_.get(), &there, sizeof there, range_of(of.place, F_UNLCK).l_start) ==
          static_cast<ssize_t>(sizeof there) &&
      there == of.number)
    return;
  drop_one(of.place);
  throw invalid_argument("the tensor has ended in process " + std::to_string(of.process));
}

void held_leases::drop(const lease_name& of) noexcept {
  const std::lock_guard lock(guard_);
  drop_one(of.place);
}

bool held_leases::lock_place(std::int64_t place) {
  using clock = std::chrono::steady_clock;
  for (const auto until = clock::now() + std::chrono::seconds(5);;) {
    struct flock range = range_of(place, F_RDLCK);
    if (::fcntl(file_.get(), F_OFD_SETLK, &range) == 0) return true;
    if (clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void held_leases::drop_one(std::int64_t place) noexcept {
  const auto found = counts_.find(place);
  if (found == counts_.end() || --found->second > 0) return;
  counts_.erase(found);
  if (!process_.is_here()) return;
  struct flock range = range_of(place, F_UNLCK);
  ::fcntl(file_.get(), F_OFD_SETLK, &range);
}

}  // namespace ferry::detail
