// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/shared/detail/shared_segment.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include "host_segment.hpp"

#include <Kokkos_Core.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

std::string path_of(const segment_lease& lease) {
  return "/proc/" + std::to_string(lease.process) + "/fd/" + std::to_string(lease.descriptor);
}

/// The descriptor's name has the key, so a process that has got the number of one that ended is not taken
/// for that.
void require_lease_file(const segment_lease& lease) {
  char expected[64], name[64] = "";
  const int length = std::snprintf(expected, sizeof expected, "/memfd:ferry.leases.%016" PRIx64, lease.file);
  const ssize_t count = ::readlink(path_of(lease).c_str(), name, sizeof name);
  if (count >= length && std::memcmp(name, expected, static_cast<std::size_t>(length)) == 0) return;
  throw invalid_argument("process " + std::to_string(lease.process) +
                         ", which shared it, has ended or is of another user");
}

}  // namespace

/// The leases of this process' segments.
class lease_file {
 public:
  /// Makes the file. Throws bad_alloc.
  lease_file() : key_(random_number()) {
    char name[40];
    std::snprintf(name, sizeof name, "ferry.leases.%016" PRIx64, key_);
    file_ = owned_descriptor(::memfd_create(name, MFD_CLOEXEC));
    if (file_.get() < 0) fail("no file");
  }
  /// A new lease at a place that has none. Throws bad_alloc.
  [[nodiscard]] segment_lease begin(std::int64_t place) {
    const segment_lease lease{key_, random_number(), place, static_cast<std::int32_t>(::getpid()),
                              file_.get()};
    if (!write(place, lease.number)) fail("no place");
    return lease;
  }
  /// True if anyone holds the lease.
  [[nodiscard]] bool is_held(std::int64_t place) const noexcept {
    struct flock range = range_of(place, F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
  }
  /// Ends a lease, so that nobody gets hold of it any more; false if someone holds it.
  [[nodiscard]] bool end(std::int64_t place) noexcept {
    struct flock range = range_of(place, F_WRLCK);
    if (::fcntl(file_.get(), F_OFD_SETLK, &range) != 0) return false;
    const bool is_over = write(place, 0);
    range.l_type = F_UNLCK;
    ::fcntl(file_.get(), F_OFD_SETLK, &range);
    return is_over;
  }

 private:
  [[noreturn]] static void fail(const char* lack) {
    throw bad_alloc(std::string("ferry::share: ") + lack +
                    " for the users of shared memory: " + std::strerror(errno));
  }
  bool write(std::int64_t place, std::uint64_t number) noexcept {
    return ::pwrite(file_.get(), &number, sizeof number, range_of(place, F_UNLCK).l_start) ==
           static_cast<ssize_t>(sizeof number);
  }

  std::uint64_t key_;
  owned_descriptor file_;
};

/// The leases that this process holds, of the file of another one. A child of fork() shares the locks, and so
/// keeps those that this process has when it ends; it drops none. The caller locks.
class held_leases {
 public:
  /// Opens the file of a process. Throws invalid_argument if the process has none of that key.
  explicit held_leases(const segment_lease& lease) : key_(lease.file) {
    require_lease_file(lease);
    file_ = owned_descriptor(::open(path_of(lease).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    require_lease_file(lease);
    if (file_.get() < 0)
      throw invalid_argument("this process can't open the leases of process " +
                             std::to_string(lease.process) + ": " + std::strerror(errno));
  }
  /// True if these are leases of that file, held by the calling process.
  [[nodiscard]] bool serves(const segment_lease& lease) const noexcept {
    return lease.file == key_ && process_.is_here();
  }
  /// Takes hold of a lease; each hold() needs a drop(). Throws invalid_argument if the memory or its process
  /// has ended.
  void hold(const segment_lease& lease) {
    require_lease_file(lease);
    int& count = counts_[lease.place];
    if (count == 0 && !lock_place(lease.place)) {
      counts_.erase(lease.place);
      throw invalid_argument("process " + std::to_string(lease.process) +
                             " does not let go of the lease: " + std::strerror(errno));
    }
    ++count;
    std::uint64_t number = 0;
    if (::pread(file_.get(), &number, sizeof number, range_of(lease.place, F_UNLCK).l_start) ==
            static_cast<ssize_t>(sizeof number) &&
        number == lease.number)
      return;
    drop(lease);
    throw invalid_argument("the tensor has ended in process " + std::to_string(lease.process));
  }
  void drop(const segment_lease& lease) noexcept {
    const auto count = counts_.find(lease.place);
    if (count == counts_.end() || --count->second > 0) return;
    counts_.erase(count);
    if (!process_.is_here()) return;
    struct flock range = range_of(lease.place, F_UNLCK);
    ::fcntl(file_.get(), F_OFD_SETLK, &range);
  }

 private:
  /// Only a moment passes while the owner ends another lease of the place.
  bool lock_place(std::int64_t place) {
    using clock = std::chrono::steady_clock;
    for (const auto until = clock::now() + std::chrono::seconds(5);;) {
      struct flock range = range_of(place, F_RDLCK);
      if (::fcntl(file_.get(), F_OFD_SETLK, &range) == 0) return true;
      if (clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::uint64_t key_;
  process_mark process_;
  owned_descriptor file_;
  std::map<std::int64_t, int> counts_;  ///< of the places that are locked
};

/// A segment of this process.
struct lent_segment {
  shared_segment segment;
  void* data = nullptr;
  int device = 0;
  std::shared_ptr<void> room;  ///< the allocation, when its owner has let it go
  bool is_kept = false;

  [[nodiscard]] bool is_idle_on(int wanted_device) const noexcept {
    return is_kept && (wanted_device == -1 || device == wanted_device);
  }
};

/// The kept allocations of a device that nobody uses, as a pool of idle memory.
class idle_segments final : public idle_memory {
 public:
  idle_segments(shared_segments& segments, int device) : segments_(segments), device_(device) {}
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] std::size_t idle_bytes() const override { return segments_.unused_bytes(device_); }
  std::size_t trim(std::size_t enough, in_flight) override { return segments_.collect(enough, device_); }
  void close() noexcept override {}

 private:
  shared_segments& segments_;
  int device_;
};

/// A segment of another process, or of this one, as a device uses it.
struct shared_segments::opened {
  shared_segment segment;
  int device = -1;
  process_mark user;
  std::shared_ptr<held_leases> leases;
  std::byte* data = nullptr;
  void* import = nullptr;  ///< null for memory of this process
  std::size_t count = 0;

  [[nodiscard]] bool is(const shared_segment& candidate, int user_device) const {
    return segment.lease.file == candidate.lease.file && segment.lease.number == candidate.lease.number &&
           device == user_device && user.is_here();
  }
};

struct shared_segments::use {
  shared_segments& segments;
  opened* entry = nullptr;

  explicit use(shared_segments& owner) : segments(owner) {}
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  ~use() {
    if (entry != nullptr) segments.close(*entry);
  }
};

struct shared_segments::state {
  segment_memory memory;

  mutable std::mutex lent_guard{};
  pid_t owner = -1;
  bool hooked = false;
  std::optional<lease_file> file{};
  std::vector<std::unique_ptr<lent_segment>> lent{};  ///< by place
  std::vector<std::shared_ptr<idle_segments>> pools{};

  mutable std::mutex open_guard{};  ///< taken before lent_guard
  std::list<opened> opened_segments{};
  std::vector<std::weak_ptr<held_leases>> leases{};

  [[nodiscard]] std::shared_ptr<held_leases> leases_of(const segment_lease& lease) {
    std::erase_if(leases, [](const auto& holder) { return holder.expired(); });
    for (const auto& holder : leases)
      if (auto alive = holder.lock(); alive != nullptr && alive->serves(lease)) return alive;
    auto fresh = std::make_shared<held_leases>(lease);
    leases.push_back(fresh);
    return fresh;
  }
};

shared_segments::shared_segments(const segment_memory& memory) : state_(*new state{memory}) {}

void shared_segments::begin_process() {
  if (!state_.hooked && Kokkos::is_initialized()) {
    call_at_finalize([](void* context) { static_cast<state*>(context)->memory.at_finalize(); }, &state_);
    state_.hooked = true;
  }
  if (state_.owner == ::getpid()) return;
  for (auto& entry : state_.lent) static_cast<void>(entry.release());  // the parent's
  state_.lent.clear();
  state_.file.emplace();
  state_.owner = ::getpid();
}

shared_segments::lent shared_segments::lend(void* data, std::size_t bytes, int device,
                                            std::shared_ptr<void> room) {
  collect(~std::size_t{0});
  const std::lock_guard lock(state_.lent_guard);
  begin_process();
  for (const auto& entry : state_.lent)
    if (entry != nullptr && entry->data == data && !entry->is_kept)
      return {entry->segment, entry.get(), false};
  const auto is_of_device = [device](const auto& pool) { return pool->device() == device; };
  if (std::none_of(state_.pools.begin(), state_.pools.end(), is_of_device)) {
    auto pool = std::make_shared<idle_segments>(*this, device);
    add_idle_memory(state_.memory.account(device), pool);
    state_.pools.push_back(std::move(pool));
  }
  const auto free = std::find(state_.lent.begin(), state_.lent.end(), nullptr);
  const auto place = static_cast<std::size_t>(free - state_.lent.begin());
  if (free == state_.lent.end()) state_.lent.emplace_back();
  auto entry = std::make_unique<lent_segment>();
  entry->data = data;
  entry->device = device;
  entry->room = std::move(room);
  entry->segment.exported = state_.memory.export_memory(data, device);
  entry->segment.device = state_.memory.uuid_of(device);
  entry->segment.bytes = bytes;
  entry->segment.lease = state_.file->begin(static_cast<std::int64_t>(place));
  state_.lent[place] = std::move(entry);
  return {state_.lent[place]->segment, state_.lent[place].get(), true};
}

/// A child of fork() has copies of its parent's allocations, and must not end their leases.
bool shared_segments::keep(void* entry, void* allocation) noexcept {
  const std::lock_guard lock(state_.lent_guard);
  auto& released = *static_cast<lent_segment*>(entry);
  const segment_lease& lease = released.segment.lease;
  if (lease.process != ::getpid()) return false;
  if (state_.file->end(lease.place)) {
    state_.lent[static_cast<std::size_t>(lease.place)].reset();
    return false;
  }
  state_.memory.move(released.room.get(), allocation);
  released.is_kept = true;
  return true;
}

std::size_t shared_segments::collect(std::size_t enough, int device) {
  std::vector<std::unique_ptr<lent_segment>> unused;  // destroyed after the lock is released
  std::size_t bytes = 0;
  const std::lock_guard lock(state_.lent_guard);
  if (state_.owner != ::getpid()) return 0;
  unused.reserve(state_.lent.size());
  for (auto& entry : state_.lent) {
    if (bytes >= enough || entry == nullptr || !entry->is_idle_on(device)) continue;
    if (!state_.file->end(entry->segment.lease.place)) continue;
    bytes += entry->segment.bytes;
    unused.push_back(std::move(entry));
  }
  return bytes;
}

std::size_t shared_segments::unused_bytes(int device) const {
  const std::lock_guard lock(state_.lent_guard);
  if (state_.owner != ::getpid()) return 0;
  std::size_t bytes = 0;
  for (const auto& entry : state_.lent)
    if (entry != nullptr && entry->is_idle_on(device) && !state_.file->is_held(entry->segment.lease.place))
      bytes += entry->segment.bytes;
  return bytes;
}

std::byte* shared_segments::own_memory(const segment_lease& lease, int& device) const {
  const std::lock_guard lock(state_.lent_guard);
  if (state_.owner != ::getpid() || lease.process != state_.owner) return nullptr;
  for (const auto& entry : state_.lent)
    if (entry != nullptr && entry->segment.lease.file == lease.file &&
        entry->segment.lease.number == lease.number) {
      device = entry->device;
      return static_cast<std::byte*>(entry->data);
    }
  return nullptr;
}

std::shared_ptr<std::byte> shared_segments::open(const shared_segment& segment, int device) {
  auto user = std::make_shared<use>(*this);
  const std::lock_guard lock(state_.open_guard);
  auto& entries = state_.opened_segments;
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [&](const opened& candidate) { return candidate.is(segment, device); });
  if (entry == entries.end()) {
    entry = entries.emplace(entries.end());
    try {
      open_entry(*entry, segment, device);
    } catch (...) {
      entries.erase(entry);
      throw;
    }
  }
  ++entry->count;
  user->entry = &*entry;
  return {user, entry->data};
}

void shared_segments::open_entry(opened& entry, const shared_segment& segment, int device) {
  const auto leases = state_.leases_of(segment.lease);
  leases->hold(segment.lease);
  try {
    int home = device;
    entry.data = own_memory(segment.lease, home);
    if (home != device && !state_.memory.devices_reach(device, home))
      throw device_error("device " + std::to_string(device) + " does not reach the memory of device " +
                         std::to_string(home));
    if (entry.data == nullptr) {
      entry.import = state_.memory.import_memory(segment.exported.token, segment.device, device);
      entry.data = static_cast<std::byte*>(entry.import) + segment.exported.offset;
    }
  } catch (...) {
    leases->drop(segment.lease);
    throw;
  }
  entry.leases = leases;
  entry.segment = segment;
  entry.device = device;
  entry.user = process_mark();
}

bool shared_segments::find(const void* address, shared_segment& segment, std::size_t& offset) const {
  const std::lock_guard lock(state_.open_guard);
  for (const opened& entry : state_.opened_segments) {
    const auto first = reinterpret_cast<std::uintptr_t>(entry.data);
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    if (place < first || place - first >= entry.segment.bytes) continue;
    segment = entry.segment;
    offset = place - first;
    return true;
  }
  return false;
}

/// The lease ends after the memory is closed. A child of fork() can't close memory that its parent opened.
void shared_segments::close(opened& entry) noexcept {
  const std::lock_guard lock(state_.open_guard);
  if (--entry.count != 0) return;
  if (entry.import != nullptr && entry.user.is_here()) state_.memory.end_import(entry.import, entry.device);
  entry.leases->drop(entry.segment.lease);
  state_.opened_segments.remove_if([&entry](const opened& candidate) { return &candidate == &entry; });
}

}  // namespace ferry::detail
