// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

/// An io_error: "ferry::io::<verb>: <path>: <problem>"; a verb of another capability has its whole name,
/// "ferry::calibrate".
[[noreturn]] void throw_io_error(const std::string& verb, const std::string& path, std::string_view problem);
/// Such an error, with the text of errno.
[[noreturn]] void throw_errno(const std::string& verb, const std::string& path, std::string_view operation);

/// The most bytes that a file of this process may have (ulimit -f). The system ends a process that writes
/// beyond them, so nobody tries.
std::uint64_t largest_file() noexcept;

/// A regular file. Reads and writes name their offset, so several threads may use one file. Errors are
/// io_errors that name the verb, the path and the operation. Other processes that this one starts do not
/// inherit the file.
///
/// The names come first and open() last: nothing that takes memory, and so may fail, lies between the
/// system's descriptor and its owner.
class file {
 public:
  file() = default;
  /// A file that is not open yet, and its names for messages. Throws invalid_argument for a path with a NUL.
  file(std::string verb, std::string path);
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  file(file&& source) noexcept;
  file& operator=(file&& source) noexcept;
  ~file();

  /// An existing file. Follows symbolic links. Refuses folders, pipes and devices, which have no size to
  /// check a header against. Throws not_found for a file that does not exist.
  static file open_to_read(const std::string& verb, const std::string& path);

  /// open(2), which replaces a descriptor that the file has; `path` may differ from that for messages. False
  /// if it fails, with errno.
  [[nodiscard]] bool open(const char* path, int flags, unsigned mode = 0) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& verb() const noexcept { return verb_; }

  [[nodiscard]] struct stat status() const;
  /// Bytes.
  [[nodiscard]] std::uint64_t size() const;

  /// Reads exactly `bytes` bytes from `offset`. A file that ends before throws.
  void read_at(void* target, std::size_t bytes, std::uint64_t offset) const;

  /// Writes `bytes` bytes at `offset`.
  void write_at(const void* source, std::size_t bytes, std::uint64_t offset) const;

  /// Starts to bring written bytes to the disk, so that sync() has less to wait for. A hint: failures are
  /// found by sync().
  void start_write_back(std::uint64_t offset, std::size_t bytes) const noexcept;

  /// Reserves room for a file of `bytes` bytes, so that a full disk is found before anything is written.
  /// Does nothing on file systems that can't.
  void reserve(std::uint64_t bytes) const;

  /// Returns when the content is on the disk.
  void sync() const;

  /// Closes the file, whatever the system says.
  void drop() noexcept;
  /// Closes the file and throws if the system reports a late error.
  void close();

  [[noreturn]] void fail(std::string_view problem) const;
  [[noreturn]] void fail_by_errno(std::string_view operation) const;

 private:
  static constexpr std::size_t max_transfer = std::size_t{1} << 30;  // Linux moves less than 2 GiB at once

  [[nodiscard]] off_t checked(std::uint64_t offset) const;

  int descriptor_ = -1;
  std::string verb_;
  std::string path_;
};

/// The folder part of a path: "." for "w.npy", "/" for "/w.npy".
std::string folder_of(const std::string& path);

/// The path of an entry of a folder.
std::string path_in(std::string folder, const std::string& name);

/// A folder, opened for sync_folder.
file open_folder(const std::string& verb, const std::string& folder);
/// Returns when the entries of a folder, new names say, are on the disk. Takes no memory.
void sync_folder(const file& folder);

/// Throws invalid_argument for a path with a NUL inside. The system would take the part before it, which
/// names another file. Every function of the library that takes a path asks here.
void require_whole_path(std::string_view verb, std::string_view path);

/// How a symbolic link with the name of a file is taken.
enum class file_links : unsigned char { followed, replaced };

/// A file that appears as a whole or not at all. The content is written to a temporary file in the same
/// folder; commit() brings it to the disk, gives it its name, and brings the name to the disk. Without
/// commit(), after an exception say, the temporary file is removed and an old file of that name is as it was.
/// A process that is killed leaves the temporary file, "<name>.<process>-<number>.part".
///
/// A symbolic link that is followed stays, and the file that it names is replaced. The new file has the
/// owner and the permissions of the old one, if this process may give them. A file without an old one gets
/// those of the umask.
class atomic_file {
 public:
  /// Throws io_error if the path names a folder, device or pipe, or if its folder takes no new file.
  atomic_file(const std::string& verb, const std::string& path, file_links links = file_links::followed);
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file();

  /// The temporary file, which takes the content.
  [[nodiscard]] const file& content() const noexcept { return content_; }

  /// Gives the file its name. Where it throws, the old file is as it was, unless only the folder's fsync
  /// failed: then either file may be there after a loss of power.
  void commit();

 private:
  static constexpr int max_names = 10000;

  file content_;
  std::string final_;
  std::string temporary_;  ///< empty once there is none
  process_mark process_;
};

/// Gives a new file the owner, group and mode of the one that it will replace, if this process may. It
/// is open to nobody who could not open the old one: the mode of a group that can't be kept becomes that of
/// all others, and a program does not run as another user.
void take_rights(int descriptor, const struct stat& old) noexcept;

}  // namespace ferry::detail
