// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/tensor/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

/// Memory of devices that processes share.
///
/// Each process that shares memory has an anonymous file with a byte for each segment; a user of the segment
/// holds a lock on it. The system drops the locks of a process when that ends, however it ends. So there is
/// no count that a killed process leaves behind, no name in a folder, and a process number that the system
/// gives anew does not matter.
namespace ferry::detail {

/// True if a space is memory of devices that the backend lets other processes open.
template <class Space>
consteval bool shares_memory() {
  if constexpr (Space::is_host_accessible)
    return false;
  else if constexpr (requires { device_backend<Space>::shares_memory; })
    return device_backend<Space>::shares_memory;
  else
    return false;
}
template <class Space>
consteval void require_shared_space() {
  static_assert(
      !Space::is_host_accessible,
      "ferry: share and open_shared are for memory of devices, in device_space; processes share host memory by ferry::shared_tensor.");
}

/// The lease of a segment: a byte of a file of its process.
struct segment_lease {
  std::uint64_t key = 0;  ///< of the file and the byte; 0: no lease
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
};
/// An allocation that other processes may open.
struct shared_segment {
  segment_lease lease;
  exported_memory exported;
  device_uuid device{};
  std::uint64_t bytes = 0;
};

/// Functions of a space for its segments.
struct segment_memory {
  exported_memory (*export_memory)(void* data, int device);
  device_uuid (*uuid_of)(int device);
  void* (*import_memory)(const std::array<unsigned char, 64>& token, const device_uuid& owner, int device);
  void (*end_import)(void* data, int device);
  bool (*devices_reach)(int device, int memory);
  std::string (*account)(int device);
  /// Moves an allocation into `room`, an empty one.
  void (*move)(void* room, void* allocation) noexcept;
  void (*at_finalize)();  ///< frees kept memory
};

/// The segments of a space: those of this process that others may use, and those of other processes that
/// this one uses. If the owner of an allocation lets it go while somebody uses it, it is kept here, and freed
/// when nobody does: looked for at each share, trim and shortage of memory, and at Kokkos::finalize. Segments
/// still used then are left to the end of the process, as a device must not free memory that another process
/// reads. A child of fork() begins anew. Thread-safe. Never destroyed, because tensors may end late.
class shared_segments {
 public:
  explicit shared_segments(const segment_memory& memory);
  shared_segments(const shared_segments&) = delete;
  shared_segments& operator=(const shared_segments&) = delete;

  /// An allocation as a segment: the same one each time. `is_new` the first time; then the allocation is to
  /// ask keep(entry). `room` is an empty allocation. Throws device_error, bad_alloc.
  struct lent {
    shared_segment segment;
    void* entry = nullptr;
    bool is_new = false;
  };
  [[nodiscard]] lent lend(void* data, std::size_t bytes, int device, std::shared_ptr<void> room);
  /// Takes an allocation that its owner lets go, or returns false.
  [[nodiscard]] bool keep(void* entry, void* allocation) noexcept;
  /// Frees kept allocations that nobody uses, up to about `enough` bytes. -1 means all devices.
  std::size_t collect(std::size_t enough, int device = -1);
  [[nodiscard]] std::size_t unused_bytes(int device) const;

  /// The first byte of a segment, for work of a device, while the pointer lives. A device opens each once,
  /// however many tensors lie in it. Throws invalid_argument if the memory or its process has ended, and
  /// device_error; the caller names the tensor.
  [[nodiscard]] std::shared_ptr<std::byte> open(const shared_segment& segment, int device);
  /// The opened segment that has an address; false if there is none.
  [[nodiscard]] bool find(const void* address, shared_segment& segment, std::size_t& offset) const;

 private:
  struct state;
  struct opened;
  struct use;
  void close(opened& entry) noexcept;
  /// The memory of a lease of this process, and its device; null for another process' lease.
  [[nodiscard]] std::byte* own_memory(const segment_lease& lease, int& device) const;
  void open_entry(opened& entry, const shared_segment& segment, int device);
  void begin_process();

  state& state_;
};

/// The segments of a space.
template <MemorySpace Space>
shared_segments& segments_of() {
  using backend = device_backend<Space>;
  struct of_space : shared_segments {
    of_space()
        : shared_segments({
              &backend::export_memory,
              &backend::uuid_of,
              &backend::import_memory,
              &backend::end_import,
              [](int device, int memory) { return backend::devices_reach(device, memory); },
              [](int device) { return std::string(account_of<Space>(device)); },
              [](void* room, void* memory) noexcept {
                *static_cast<allocation<Space>*>(room) = std::move(*static_cast<allocation<Space>*>(memory));
              },
              [] { segments_of<Space>().collect(~std::size_t{0}); },
          }) {}
  };
  static shared_segments& segments = process_wide<of_space>();
  return segments;
}

/// Lets other processes use an allocation.
template <MemorySpace Space>
shared_segment lend(allocation<Space>& memory) {
  auto lent = segments_of<Space>().lend(memory.data(), memory.bytes(), memory.device(),
                                        std::make_shared<allocation<Space>>());
  if (lent.is_new)
    memory.keep_with(
        [](void* entry, allocation<Space>& released) noexcept {
          return segments_of<Space>().keep(entry, &released);
        },
        lent.entry);
  return lent.segment;
}

/// Processes that know each other by their numbers: the machine since it was started, and the namespace of
/// process numbers, 0 if the system does not tell it.
struct process_home {
  std::array<char, 40> boot{};
  std::uint64_t numbers = 0;
  static process_home current();
};

/// Names host memory of a process for others of the machine.
struct segment_handle {
  process_home home;
  std::int32_t process = 0, descriptor = -1;
  std::uint64_t bytes = 0;
  std::uint64_t key = 0;  ///< that lies behind the bytes
};

/// Text of a fixed size, cut if it is longer.
template <std::size_t Size>
struct short_text {
  std::array<char, Size> text{};
  short_text() = default;
  explicit short_text(std::string_view words) { words.copy(text.data(), Size - 1); }
  [[nodiscard]] std::string_view view() const { return {text.data()}; }
};

/// The content of a shared_handle.
struct shared_record {
  /// Handles of another layout are not understood.
  static constexpr std::uint64_t own_mark = 0x3230'6572'6168'7366;
  std::uint64_t mark = 0;
  std::uint64_t type = 0;  ///< of the elements
  std::uint64_t element_bytes = 0;
  std::uint64_t offset = 0;  ///< bytes from the allocation's first to the tensor's
  std::uint64_t rank = 0;
  std::array<std::uint64_t, max_rank> extents{};
  shared_segment segment;
  process_home home;
  short_text<32> space;
  short_text<64> type_name;
  short_text<96> label;

  shared_record() = default;
  /// Describes a tensor with elements of a type, without its memory.
  shared_record(const std::type_info& elements, std::size_t bytes, std::string_view space_name,
                std::string_view tensor_label, std::span<const std::size_t> sizes);

  /// "'w' [10 x 4] of float in device_space, of process 1234"
  [[nodiscard]] std::string describe() const;
  /// Equal for a type in all programs.
  static std::uint64_t digest_of(const std::type_info& type);
  static std::string name_of_type(std::string_view mangled);
};

/// Throws invalid_argument: "<call>: <record>: <why>"
[[noreturn]] void refuse_record(const char* call, const shared_record& record, const std::string& why);
/// As above, for device_space of a host backend.
[[noreturn]] void refuse_host_memory(const char* call, const shared_record& record);
/// Throws invalid_argument unless this process may open the tensor with elements of a type in a space; of
/// `rank` extents, -1 for any number.
void require_opens(const shared_record& record, const std::type_info& elements, std::size_t bytes,
                   std::string_view space, int rank);

}  // namespace ferry::detail
