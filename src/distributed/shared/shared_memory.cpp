// SPDX-License-Identifier: Apache-2.0

#include "../../../backends/enabled.hpp"

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/shared_tensor.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <Kokkos_Core.hpp>

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An open file descriptor.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int descriptor) : descriptor_(descriptor) {}
  owned_descriptor(owned_descriptor&& source) noexcept : descriptor_(std::exchange(source.descriptor_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& source) noexcept {
    std::swap(descriptor_, source.descriptor_);
    return *this;
  }
  ~owned_descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A number of the system that no other process gets, which is not 0.
std::uint64_t random_number() {
  std::random_device random;
  return ((static_cast<std::uint64_t>(random()) << 32) ^ random()) | 1;
}

/// Host memory without a name, which other processes of the machine open by the number of its descriptor, in
/// the accounts of its space. All of its pages are there from the beginning, and no process can take them away,
/// so no access ends a process by SIGBUS. A key lies behind the bytes: it tells them from a file of the same
/// process and descriptor in another namespace.
class host_segment {
 public:
  /// New memory, which is zero. Throws bad_alloc, budget_exceeded.
  host_segment(const char* call, const std::string& label, std::size_t bytes, bool pinned)
      : call_(call), bytes_(bytes + sizeof handle_.key) {
    if (bytes == 0) return;
    if (!pinned) charge_ = memory_charge(pageable_space::name, "ferry::tensor::" + label, bytes);
    reserve(label);
    map(label, pinned);
    if (!pinned) charge_.confirm();
    handle_ = {process_home::current(), static_cast<std::int32_t>(::getpid()), descriptor_.get(), bytes,
               random_number()};
    std::memcpy(data() + bytes, &handle_.key, sizeof handle_.key);
  }
  /// The memory of another process, whose descriptor stays open until this returns. Throws bad_alloc,
  /// invalid_argument for a process that can't be reached.
  host_segment(const char* call, const std::string& label, const segment_handle& handle, bool pinned)
      : call_(call), bytes_(static_cast<std::size_t>(handle.bytes) + sizeof handle.key), handle_(handle) {
    if (handle.bytes == 0) return;
    descriptor_ = opened_descriptor();
    map(label, pinned);
    close_descriptor();
    if (std::memcmp(data() + handle.bytes, &handle.key, sizeof handle.key) != 0)
      throw invalid_argument("process " + std::to_string(handle.process) + " has no such memory any more");
  }
  host_segment(const host_segment&) = delete;
  host_segment& operator=(const host_segment&) = delete;
  ~host_segment() = default;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(mapping_.get()); }
  [[nodiscard]] const segment_handle& handle() const { return handle_; }
  /// The mapping stays.
  void close_descriptor() { descriptor_ = owned_descriptor(); }

 private:
  struct unmapping {
    std::size_t bytes;
    void operator()(void* data) const noexcept { ::munmap(data, bytes); }
  };

  [[noreturn]] void fail(const std::string& label, const std::string& why) const {
    throw bad_alloc(std::string(call_) + ": no " + std::to_string(bytes_) + " bytes of shared memory for '" +
                    label + "': " + why);
  }
  [[noreturn]] void fail_call(const std::string& label, const char* call, int error) const {
    fail(label, std::string(call) + ": " + std::strerror(error));
  }
  /// Throws invalid_argument.
  [[nodiscard]] owned_descriptor opened_descriptor() const {
    const std::string process = "process " + std::to_string(handle_.process);
    const process_home home = process_home::current();
    if (handle_.descriptor < 0) throw invalid_argument(process + " has no host memory to share");
    if (handle_.home.boot != home.boot) throw invalid_argument(process + " is on another machine");
    if (handle_.home.numbers != home.numbers)
      throw invalid_argument(process + " is in another container, whose processes this one does not see");
    const std::string path =
        "/proc/" + std::to_string(handle_.process) + "/fd/" + std::to_string(handle_.descriptor);
    owned_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat facts {};
    if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
      throw invalid_argument(process + " does not let this one open its memory: " + std::strerror(errno));
    if (std::cmp_not_equal(facts.st_size, bytes_))
      throw invalid_argument(process + " has no such memory any more");
    return file;
  }
  void reserve(const std::string& label) {
    const std::int64_t available = available_bytes();
    if (std::cmp_greater(bytes_, std::int64_t{1} << 62) ||
        (available >= 0 && std::cmp_greater(bytes_, available)))
      fail(label, std::to_string(available) + " bytes are available");
    if (const std::uint64_t most = largest_file(); bytes_ > most)
      fail(label, "files of this process, which it counts among, may have " + std::to_string(most) +
                      " bytes (ulimit -f)");
    descriptor_ = owned_descriptor(::memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int file = descriptor_.get();
    if (file < 0) fail_call(label, "memfd_create", errno);
    const auto size = static_cast<off_t>(bytes_);
    if (::ftruncate(file, size) != 0) fail_call(label, "ftruncate", errno);
    // In pieces: a signal undoes a call, and under a timer a long one would never end.
    constexpr off_t piece = off_t{1} << 25;
    for (off_t first = 0; first < size; first += piece) {
      int status = EINTR;
      while (status == EINTR) status = ::posix_fallocate(file, first, std::min(piece, size - first));
      if (status != 0) fail_call(label, "posix_fallocate", status);
    }
    if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail_call(label, "F_ADD_SEALS", errno);
  }
  void map(const std::string& label, bool pinned) {
    void* const raw = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (raw == MAP_FAILED) fail_call(label, "mmap", errno);
    mapping_ = {raw, unmapping{bytes_}};
    if (pinned) locked_.emplace("ferry::tensor::" + label, raw, bytes_);
  }

  const char* call_;   ///< for messages
  std::size_t bytes_;  ///< with the key
  segment_handle handle_;
  memory_charge charge_;
  owned_descriptor descriptor_;
  std::unique_ptr<void, unmapping> mapping_{};
  std::optional<locked_pages<pinned_space>> locked_;
};

process_home process_home::current() {
  process_home home;
  if (std::FILE* const stream = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(home.boot.data(), static_cast<int>(home.boot.size()), stream) == nullptr) home.boot = {};
    std::fclose(stream);
  }
  struct stat facts {};
  if (::stat("/proc/self/ns/pid", &facts) == 0) home.numbers = static_cast<std::uint64_t>(facts.st_ino);
  return home;
}

shared_record::shared_record(const std::type_info& elements, std::size_t bytes, std::string_view space_name,
                             std::string_view tensor_label, std::span<const std::size_t> sizes)
    : mark(own_mark),
      type(digest_of(elements)),
      element_bytes(bytes),
      rank(sizes.size()),
      home(process_home::current()),
      space(space_name),
      type_name(elements.name()),
      label(tensor_label) {
  std::copy(sizes.begin(), sizes.end(), extents.begin());
}

std::string shared_record::describe() const {
  if (mark != own_mark) return "a handle that names no tensor";
  std::string shape = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(rank, max_rank); ++i)
    shape += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return "'" + std::string(label.view()) + "' " + shape + "] of " + name_of_type(type_name.view()) + " in " +
         std::string(space.view()) +
         (segment.lease.key == 0 ? std::string() : ", of process " + std::to_string(segment.lease.process));
}

std::uint64_t shared_record::digest_of(const std::type_info& type) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  for (const char* c = type.name(); *c != '\0'; ++c)
    digest = (digest ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return digest;
}

std::string shared_record::name_of_type(std::string_view mangled) {
  int status = 0;
  const std::string text(mangled);
  char* const readable = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
  if (readable == nullptr) return text;
  std::string name(readable);
  std::free(readable);
  return name;
}

void refuse_record(const char* call, const shared_record& record, const std::string& why) {
  throw invalid_argument(std::string(call) + ": " + record.describe() + ": " + why);
}

void refuse_host_memory(const char* call, const shared_record& record) {
  refuse_record(call, record,
                "on this backend that is host memory, which no other process can open; make a "
                "ferry::shared_tensor instead");
}

void require_opens(const shared_record& record, const std::type_info& elements, std::size_t bytes,
                   std::string_view space, int rank) {
  const auto refuse = [&record](const std::string& why) { refuse_record("ferry::open_shared", record, why); };
  if (record.mark != shared_record::own_mark || record.rank > max_rank)
    refuse("it was not made by ferry::share of this version");
  const process_home own_home = process_home::current();
  if (record.home.boot != own_home.boot) refuse("it was shared on another machine");
  if (record.home.numbers != own_home.numbers)
    refuse("it was shared in another container, whose processes this one does not see");
  if (record.space.view() != space) refuse("it was opened as a tensor in " + std::string(space));
  if (record.type != shared_record::digest_of(elements) || record.element_bytes != bytes)
    refuse("it has elements of " + std::to_string(record.element_bytes) +
           " bytes, and was opened as a tensor of " + shared_record::name_of_type(elements.name()) + ", of " +
           std::to_string(bytes) + " bytes");
  if (rank >= 0 && std::cmp_not_equal(record.rank, rank))
    refuse("it has " + std::to_string(record.rank) + " extents, and was opened as a tensor of " +
           std::to_string(rank));
}

namespace {

constexpr const char* shared_tensor_call = "ferry::shared_tensor";

using segment_owner = std::shared_ptr<host_segment>;

segment_owner segment_of_ranks(collective& call, const communicator& comm, const std::string& label,
                               std::size_t bytes, bool pinned) {
  const auto& group = *comm.group();
  segment_owner segment;
  if (call.is_whole() || call.rank() == 0)
    segment = std::make_shared<host_segment>(shared_tensor_call, label, bytes, pinned);
  if (call.is_whole()) return segment;
  if (group.local_count() == group.size()) {  // ranks of one process
    const segment_owner* const owner = &segment;
    call.begin_reads();  // of the owner of rank 0, also if its deadline passes
    const auto owners = call.all_gather(std::span<const segment_owner* const>(&owner, 1));
    if (call.rank() != 0) segment = *owners.front();
    call.agree();
    call.cancel_reads();
    return segment;
  }
  if (group.local_count() != 1)
    throw invalid_argument(
        "ferry::shared_tensor: ranks must be threads of one process, or processes of one rank each");
  const segment_handle handle = segment == nullptr ? segment_handle{} : segment->handle();
  const auto handles = call.all_gather(std::span<const segment_handle>(&handle, 1));  // rank 0 has the memory
  if (call.rank() != 0) try {
      segment = std::make_shared<host_segment>(shared_tensor_call, label, handles.front(), pinned);
    } catch (const invalid_argument& why) {
      throw invalid_argument(std::string("ferry::shared_tensor: ") + why.what() +
                             "; ranks on several machines share no memory: use a sharded_table");
    }
  call.agree();
  segment->close_descriptor();
  return segment;
}

}  // namespace

shared_bytes share_memory(collective& call, const communicator& comm, const std::string& label,
                          std::size_t bytes, bool pinned) {
  auto segment = segment_of_ranks(call, comm, label, bytes, pinned);
  std::byte* const data = segment->data();
  return {std::move(segment), data};
}

namespace {

/// A rank's words at an exchange by windows; the begin of each part follows.
struct window_words {
  shared_handle handle;
  std::uint64_t number = 0;
  std::int32_t has_room = 0;
  std::int32_t has_trouble = 0;
};

/// Why a rank ends the windows of all.
struct window_trouble {
  bool is_there = false;
  short_text<256> text;
};

}  // namespace

bool rank_windows::reserve(int rank, std::span<const outgoing_part> outgoing, int device,
                           const window_functions& functions) {
  constexpr std::size_t unit = 256;  // a part begins where the widest loads of kernels may
  const auto whole = [](std::size_t bytes) { return (bytes + unit - 1) / unit * unit; };
  std::size_t bytes = 0;
  begin_.assign(outgoing.size(), 0);
  is_packed_.assign(outgoing.size(), false);
  std::size_t last = outgoing.size();  // the last part that leaves
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    if (static_cast<int>(i % opened_.size()) == rank || outgoing[i].bytes == 0) continue;
    const bool repeats = last != outgoing.size() && outgoing[last].data == outgoing[i].data &&
                         outgoing[last].bytes == outgoing[i].bytes;
    begin_[i] = repeats ? begin_[last] : static_cast<std::int64_t>(bytes);
    is_packed_[i] = !repeats;
    if (!repeats) bytes += whole(outgoing[i].bytes);
    last = i;
  }
  if (number_ == 0 && device_ < 0) device_ = device;
  has_room_ = device == device_;
  if (has_room_ && 2 * bytes > memory_.bytes) {
    memory_ = {};  // if the others have it open, it lives until they have opened the new one
    // A quarter more, so that batches that grow slowly do not need new memory each time.
    constexpr std::size_t least = std::size_t{1} << 20;
    for (const std::size_t size : {2 * whole(std::max(bytes + bytes / 4, least)), 2 * bytes}) try {
        memory_ = functions.make(size, device);
        ++number_;
        break;
      } catch (const bad_alloc&) {  // less may be left
      } catch (const std::bad_alloc&) {
      } catch (const error& lost) {
        trouble_ = std::string("it can't share memory: ") + lost.what();
        break;
      }
    has_room_ = memory_.data != nullptr;
  }
  for (std::int64_t& begin : begin_) begin += static_cast<std::int64_t>(half_ * (memory_.bytes / 2));
  return has_room_;
}

std::byte* rank_windows::part(std::size_t i) const {
  return is_packed_[i] ? memory_.data.get() + begin_[i] : nullptr;
}

const std::byte* rank_windows::part_of(int rank, std::size_t i) const {
  const opened_window& window = opened_[static_cast<std::size_t>(rank)];
  return window.data.get() + window.begin[i];
}

bool rank_windows::exchange_notes(collective& call, const window_functions& functions) {
  const window_words own_words{memory_.handle, memory_.data == nullptr ? 0 : number_, has_room_ ? 1 : 0,
                               trouble_.empty() ? 0 : 1};
  std::vector<std::byte> message(sizeof own_words + begin_.size() * sizeof(std::int64_t));
  std::memcpy(message.data(), &own_words, sizeof own_words);
  if (!begin_.empty())
    std::memcpy(message.data() + sizeof own_words, begin_.data(), message.size() - sizeof own_words);
  const auto messages = call.all_gather(std::span<const std::byte>(message));
  half_ = 1 - half_;
  const auto self = static_cast<std::size_t>(call.rank());
  std::vector<window_words> words(opened_.size());
  bool all_have_room = true, is_any_new = false, has_trouble = false;
  const auto is_new = [&](std::size_t r) {
    return words[r].number != 0 && words[r].number != opened_[r].number;
  };
  for (std::size_t r = 0; r < words.size(); ++r) {
    const std::byte* const arrived = messages.data() + r * message.size();
    std::memcpy(&words[r], arrived, sizeof words[r]);
    opened_[r].begin.resize(begin_.size());
    if (!begin_.empty())
      std::memcpy(opened_[r].begin.data(), arrived + sizeof words[r], message.size() - sizeof words[r]);
    all_have_room = all_have_room && words[r].has_room != 0;
    is_any_new = is_any_new || is_new(r);
    has_trouble = has_trouble || words[r].has_trouble != 0;
  }
  if (!has_trouble && (!all_have_room || !is_any_new)) return all_have_room;
  std::vector<std::shared_ptr<std::byte>> windows(words.size());
  window_trouble trouble{!trouble_.empty(), short_text<256>(trouble_)};
  try {
    for (std::size_t r = 0; r < words.size() && !has_trouble; ++r)
      if (r != self && is_new(r)) windows[r] = functions.open(words[r].handle, device_);
  } catch (const std::exception& lost) {
    trouble = {true, short_text<256>(std::string("it can't read the memory of the others: ") + lost.what())};
  }
  const auto troubles = call.all_gather(std::span<const window_trouble>(&trouble, 1));
  for (std::size_t r = 0; r < troubles.size(); ++r)
    if (troubles[r].is_there) {
      close("rank " + std::to_string(r) + ": " + std::string(troubles[r].text.view()));
      return false;
    }
  for (std::size_t r = 0; r < words.size(); ++r)
    if (is_new(r)) {
      opened_[r].data = std::move(windows[r]);
      opened_[r].number = words[r].number;
    }
  return true;
}

void rank_windows::close(const std::string& why) {
  serve_ = false;
  memory_ = {};
  opened_.assign(opened_.size(), {});
  why_not_ = why;
}

rank_windows* rank_windows_of(const collective& call) {
  constexpr int most_ranks = 64;
  transport& group = *call.group();
  if (call.is_whole() || group.local_count() != 1 || group.size() == 1 || group.size() > most_ranks)
    return nullptr;
  auto& windows = group.windows();
  if (windows == nullptr) windows = std::make_shared<rank_windows>(group.size());
  return static_cast<rank_windows*>(windows.get());
}

}  // namespace ferry::detail

/// Memory of devices that processes share.
namespace ferry::detail {

namespace {

/// The low bits of a key are the number of the lease, the others are in the name of the file.
constexpr int lease_bits = 24;

struct flock range_of(std::uint64_t key, short kind) noexcept {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(key & ((std::uint64_t{1} << lease_bits) - 1));
  range.l_len = 1;
  return range;
}
bool lock_range(const owned_descriptor& file, std::uint64_t key, short kind) noexcept {
  struct flock range = range_of(key, kind);
  return ::fcntl(file.get(), F_OFD_SETLK, &range) == 0;
}

/// Opens the leases of a process. Throws invalid_argument unless the descriptor is their file: a process that
/// has got the number of one that ended is not taken for that.
std::shared_ptr<owned_descriptor> open_leases(const segment_lease& lease,
                                              std::shared_ptr<owned_descriptor> file) {
  const std::string path =
      "/proc/" + std::to_string(lease.process) + "/fd/" + std::to_string(lease.descriptor);
  const auto is_there = [&] {
    char expected[64], name[64] = "";
    const int length =
        std::snprintf(expected, sizeof expected, "/memfd:ferry.leases.%010" PRIx64, lease.key >> lease_bits);
    const ssize_t count = ::readlink(path.c_str(), name, sizeof name);
    return count >= length && std::memcmp(name, expected, static_cast<std::size_t>(length)) == 0;
  };
  if (file == nullptr && is_there())
    file = std::make_shared<owned_descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file == nullptr || file->get() < 0 || !is_there())
    throw invalid_argument("process " + std::to_string(lease.process) +
                           ", which shared it, has ended or is of another user");
  return file;
}

}  // namespace

/// Holds a lease. A child of fork() shares the lock, and so keeps the lease until it ends; it drops none.
class lease_hold {
 public:
  /// Throws invalid_argument if the memory has ended.
  lease_hold(std::shared_ptr<owned_descriptor> file, const segment_lease& lease)
      : file_(std::move(file)), key_(lease.key) {
    if (!lock_range(*file_, key_, F_RDLCK))
      throw invalid_argument("the tensor has ended in process " + std::to_string(lease.process));
  }
  lease_hold(const lease_hold&) = delete;
  lease_hold& operator=(const lease_hold&) = delete;
  ~lease_hold() {
    if (process_.is_here()) static_cast<void>(lock_range(*file_, key_, F_UNLCK));
  }
  [[nodiscard]] const std::shared_ptr<owned_descriptor>& file() const { return file_; }

 private:
  std::shared_ptr<owned_descriptor> file_;
  std::uint64_t key_;
  process_mark process_;
};

/// The leases of this process' segments: users hold a lock on the byte of a lease, and the process itself one
/// that excludes them when the lease has ended. No number comes twice.
class lease_file {
 public:
  /// Throws bad_alloc.
  lease_file() : key_((random_number() >> lease_bits | 1) << lease_bits) {
    char name[40];
    std::snprintf(name, sizeof name, "ferry.leases.%010" PRIx64, key_ >> lease_bits);
    file_ = owned_descriptor(::memfd_create(name, MFD_CLOEXEC));
    if (file_.get() < 0)
      throw bad_alloc(std::string("ferry::share: no file for the users of shared memory: ") +
                      std::strerror(errno));
  }
  /// Throws bad_alloc.
  [[nodiscard]] segment_lease begin() {
    if (next_ >> lease_bits != 0) throw bad_alloc("ferry::share: this process has shared too many tensors");
    return {key_ | next_++, static_cast<std::int32_t>(::getpid()), file_.get()};
  }
  /// True if anyone holds the lease.
  [[nodiscard]] bool is_held(const segment_lease& lease) const noexcept {
    struct flock range = range_of(lease.key, F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
  }
  /// Ends the lease, so that nobody gets hold of it any more; false if someone holds it.
  [[nodiscard]] bool end(const segment_lease& lease) noexcept {
    return lock_range(file_, lease.key, F_WRLCK);
  }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 1;
  owned_descriptor file_;
};

/// A segment of this process.
struct lent_segment {
  shared_segment segment{};
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
  std::shared_ptr<lease_hold> lease;
  std::byte* data = nullptr;
  void* import = nullptr;  ///< null for memory of this process
  std::size_t count = 0;

  [[nodiscard]] bool is(const shared_segment& candidate, int user_device) const {
    return segment.lease.key == candidate.lease.key && device == user_device && user.is_here();
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
  std::vector<std::unique_ptr<lent_segment>> lent{};
  std::vector<std::shared_ptr<idle_segments>> pools{};

  mutable std::mutex open_guard{};  ///< taken before lent_guard
  std::list<opened> opened_segments{};
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
    if (entry->data == data && !entry->is_kept) return {entry->segment, entry.get(), false};
  const auto is_of_device = [device](const auto& pool) { return pool->device() == device; };
  if (std::none_of(state_.pools.begin(), state_.pools.end(), is_of_device)) {
    auto pool = std::make_shared<idle_segments>(*this, device);
    add_idle_memory(state_.memory.account(device), pool);
    state_.pools.push_back(std::move(pool));
  }
  auto entry = std::make_unique<lent_segment>();
  entry->data = data;
  entry->device = device;
  entry->room = std::move(room);
  entry->segment.exported = state_.memory.export_memory(data, device);
  entry->segment.device = state_.memory.uuid_of(device);
  entry->segment.bytes = bytes;
  entry->segment.lease = state_.file->begin();
  state_.lent.push_back(std::move(entry));
  return {state_.lent.back()->segment, state_.lent.back().get(), true};
}

/// A child of fork() has copies of its parent's allocations, and must not end their leases.
bool shared_segments::keep(void* entry, void* allocation) noexcept {
  const std::lock_guard lock(state_.lent_guard);
  auto& released = *static_cast<lent_segment*>(entry);
  if (released.segment.lease.process != ::getpid()) return false;
  if (state_.file->end(released.segment.lease)) {
    std::erase_if(state_.lent, [&](const auto& owner) { return owner.get() == &released; });
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
    if (bytes >= enough || !entry->is_idle_on(device) || !state_.file->end(entry->segment.lease)) continue;
    bytes += entry->segment.bytes;
    unused.push_back(std::move(entry));
  }
  std::erase(state_.lent, nullptr);
  return bytes;
}

std::size_t shared_segments::unused_bytes(int device) const {
  const std::lock_guard lock(state_.lent_guard);
  if (state_.owner != ::getpid()) return 0;
  std::size_t bytes = 0;
  for (const auto& entry : state_.lent)
    if (entry->is_idle_on(device) && !state_.file->is_held(entry->segment.lease))
      bytes += entry->segment.bytes;
  return bytes;
}

std::byte* shared_segments::own_memory(const segment_lease& lease, int& device) const {
  const std::lock_guard lock(state_.lent_guard);
  if (state_.owner != ::getpid() || lease.process != state_.owner) return nullptr;
  for (const auto& entry : state_.lent)
    if (entry->segment.lease.key == lease.key) {
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
  std::shared_ptr<owned_descriptor> file;
  std::shared_ptr<lease_hold> lease;
  for (const opened& candidate : state_.opened_segments) {
    if (candidate.lease == nullptr || !candidate.user.is_here()) continue;
    const std::uint64_t key = candidate.segment.lease.key;
    if (key >> lease_bits == segment.lease.key >> lease_bits) file = candidate.lease->file();
    if (key == segment.lease.key) lease = candidate.lease;
  }
  file = open_leases(segment.lease, std::move(file));
  if (lease == nullptr) lease = std::make_shared<lease_hold>(std::move(file), segment.lease);
  int owner = device;
  entry.data = own_memory(segment.lease, owner);
  if (owner != device && !state_.memory.devices_reach(device, owner))
    throw device_error("device " + std::to_string(device) + " does not reach the memory of device " +
                       std::to_string(owner));
  if (entry.data == nullptr) {
    entry.import = state_.memory.import_memory(segment.exported.token, segment.device, device);
    entry.data = static_cast<std::byte*>(entry.import) + segment.exported.offset;
  }
  entry.lease = std::move(lease);
  entry.segment = segment;
  entry.device = device;
  entry.user = process_mark();
}

bool shared_segments::find(const void* address, shared_segment& segment, std::size_t& offset) const {
  const std::lock_guard lock(state_.open_guard);
  for (const opened& entry : state_.opened_segments) {
    const auto first = reinterpret_cast<std::uintptr_t>(entry.data);
    const auto first_byte = reinterpret_cast<std::uintptr_t>(address);
    if (first_byte < first || first_byte - first >= entry.segment.bytes) continue;
    segment = entry.segment;
    offset = first_byte - first;
    return true;
  }
  return false;
}

/// The lease ends after the memory is closed. A child of fork() can't close memory that its parent opened.
void shared_segments::close(opened& entry) noexcept {
  const std::lock_guard lock(state_.open_guard);
  if (--entry.count != 0) return;
  if (entry.import != nullptr && entry.user.is_here()) state_.memory.end_import(entry.import, entry.device);
  state_.opened_segments.remove_if([&entry](const opened& candidate) { return &candidate == &entry; });
}

}  // namespace ferry::detail
