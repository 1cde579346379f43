// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/file.hpp>

#include <ferry/error.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ferry::detail {

namespace {

std::string full_name(const std::string& verb) {
  return verb.starts_with("ferry::") ? verb : "ferry::io::" + verb;
}

/// The result of a system call, which a signal may interrupt.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;)
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

/// The path at the end of a chain of symbolic links, which need not exist.
std::string behind_links(const std::string& verb, const std::string& path) {
  std::filesystem::path current = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code no_link;
    const auto target = std::filesystem::read_symlink(current, no_link);
    if (no_link) return current.string();
    current = current.parent_path() / target;
  }
  errno = ELOOP;
  throw_errno(verb, path, "readlink");
}

}  // namespace

void throw_io_error(const std::string& verb, const std::string& path, std::string_view problem) {
  throw io_error(joined(full_name(verb), ": ", path, ": ", problem));
}

void throw_errno(const std::string& verb, const std::string& path, std::string_view operation) {
  const int reason = errno;
  throw_io_error(verb, path, joined(operation, ": ", std::strerror(reason)));
}

std::uint64_t largest_file() noexcept {
  struct rlimit limit {};
  const bool has_limit = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return has_limit ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

file::file(std::string verb, std::string path) : verb_(std::move(verb)), path_(std::move(path)) {
  require_whole_path(full_name(verb_), path_);
}

file::file(file&& source) noexcept { *this = std::move(source); }

file& file::operator=(file&& source) noexcept {
  std::swap(descriptor_, source.descriptor_);
  verb_.swap(source.verb_);
  path_.swap(source.path_);
  return *this;
}

file::~file() { drop(); }

file file::open_to_read(const std::string& verb, const std::string& path) {
  file opened(verb, path);
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  if (!opened.open(path.c_str(), O_RDONLY | O_NONBLOCK)) {
    if (errno == ENOENT) throw not_found(full_name(verb) + ": " + path + ": open: " + std::strerror(ENOENT));
    throw_errno(verb, path, "open");
  }
  const struct stat status = opened.status();
  if (!S_ISREG(status.st_mode))
    throw_io_error(verb, path,
                   S_ISDIR(status.st_mode) ? "it is a folder, not a file" : "it is no regular file");
  return opened;
}

bool file::open(const char* path, int flags, unsigned mode) noexcept {
  drop();
  descriptor_ = uninterrupted([&] { return ::open(path, flags | O_CLOEXEC, mode); });
  return is_open();
}

struct stat file::status() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_by_errno("fstat");
  return status;
}

std::uint64_t file::size() const { return static_cast<std::uint64_t>(status().st_size); }

void file::read_at(void* target, std::size_t bytes, std::uint64_t offset) const {
  auto* position = static_cast<std::byte*>(target);
  while (bytes != 0) {
    const ssize_t got = uninterrupted(
        [&] { return ::pread(descriptor_, position, std::min(bytes, max_transfer), checked(offset)); });
    if (got < 0) fail_by_errno(joined("read at byte ", offset));
    if (got == 0)
      fail(joined("the file ends at byte ", offset, ", and ", bytes, " more bytes were expected"));
    position += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

void file::write_at(const void* source, std::size_t bytes, std::uint64_t offset) const {
  const auto* position = static_cast<const std::byte*>(source);
  while (bytes != 0) {
    errno = EFBIG;
    const ssize_t put = offset >= largest_file() ? -1 : uninterrupted([&] {
      return ::pwrite(descriptor_, position, std::min(bytes, max_transfer), checked(offset));
    });
    if (put < 0) fail_by_errno(joined("write at byte ", offset));
    if (put == 0) fail(joined("write at byte ", offset, ": the system took no byte"));
    position += put;
    bytes -= static_cast<std::size_t>(put);
    offset += static_cast<std::uint64_t>(put);
  }
}

void file::start_write_back(std::uint64_t offset, std::size_t bytes) const noexcept {
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off64_t>(offset), static_cast<off64_t>(bytes),
                                      SYNC_FILE_RANGE_WRITE));
}

void file::reserve(std::uint64_t bytes) const {
  if (bytes == 0) return;
  int result = -1;
  errno = EFBIG;
  // A signal undoes the call on some file systems: under a timer, a long one would never end.
  for (int tries = 0; bytes <= largest_file() && tries < 3 && result != 0; ++tries) {
    result = ::fallocate(descriptor_, 0, 0, checked(bytes));
    if (result != 0 && errno != EINTR) break;
  }
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
    fail_by_errno(joined("reserve ", bytes, " bytes"));
}

void file::sync() const {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail_by_errno("fsync");
}

void file::drop() noexcept {
  if (is_open()) ::close(descriptor_);
  descriptor_ = -1;
}

void file::close() {
  if (!is_open()) return;
  // After EINTR, Linux has closed the descriptor.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail_by_errno("close");
}

void file::fail(std::string_view problem) const { throw_io_error(verb_, path_, problem); }

void file::fail_by_errno(std::string_view operation) const { throw_errno(verb_, path_, operation); }

off_t file::checked(std::uint64_t offset) const {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    fail(joined("byte ", offset, " lies beyond the largest file"));
  return static_cast<off_t>(offset);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string path_in(std::string folder, const std::string& name) {
  if (folder.back() != '/') folder.push_back('/');
  return folder.append(name);
}

file open_folder(const std::string& verb, const std::string& folder) {
  file opened(verb, folder);
  if (!opened.open(folder.c_str(), O_RDONLY | O_DIRECTORY)) throw_errno(verb, folder, "open the folder");
  return opened;
}

void sync_folder(const file& folder) {
  // Some file systems can't, and need not.
  if (uninterrupted([&] { return ::fsync(folder.descriptor()); }) != 0 && errno != EINVAL && errno != EROFS)
    folder.fail_by_errno("fsync of the folder");
}

void require_whole_path(std::string_view verb, std::string_view path) {
  const std::size_t first = path.find('\0');
  if (first == std::string_view::npos) return;
  std::string readable;
  for (const char letter : path) readable += letter == '\0' ? std::string("\\0") : std::string(1, letter);
  throw invalid_argument(
      joined(verb, ": ", readable, ": byte ", first, " of the path is a NUL, where the system would cut it"));
}

atomic_file::atomic_file(const std::string& verb, const std::string& path, file_links links)
    : content_(verb, path), final_(links == file_links::followed ? behind_links(verb, path) : path) {
  struct stat old {};
  const bool exists = ::stat(final_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode))
    throw_io_error(verb, path, S_ISDIR(old.st_mode) ? "it is a folder, not a file" : "it is no regular file");
  const std::string folder = folder_of(final_);
  const std::size_t slash = final_.rfind('/');
  // A name has at most 255 bytes.
  const std::string name = final_.substr(slash == std::string::npos ? 0 : slash + 1).substr(0, 200);
  if (name.empty()) throw_io_error(verb, path, "it names no file");
  // Until it has the rights of the old file it is open to its owner alone.
  const unsigned mode = exists ? 0600 : 0666;
  for (int number = 0; number < max_names; ++number) {
    temporary_ = slash == std::string::npos ? name : path_in(folder, name);
    temporary_.append(".").append(std::to_string(::getpid()));
    temporary_.append("-").append(std::to_string(number)).append(".part");
    if (content_.open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode) || errno != EEXIST)
      break;
  }
  if (!content_.is_open()) throw_errno(verb, path, "create a temporary file in " + folder);
  // Nothing from here on throws: the destructor removes only the file of an object that was constructed.
  if (exists) take_rights(content_.descriptor(), old);
}

atomic_file::~atomic_file() {
  if (!temporary_.empty() && process_.is_here()) ::unlink(temporary_.c_str());
}

void atomic_file::commit() {
  const std::string verb = content_.verb();
  const std::string path = content_.path();
  const file folder = open_folder(verb, folder_of(final_));  // no step after the rename takes memory
  content_.sync();
  content_.close();
  if (std::rename(temporary_.c_str(), final_.c_str()) != 0) throw_errno(verb, path, "rename");
  temporary_.clear();
  sync_folder(folder);
}

void take_rights(int descriptor, const struct stat& old) noexcept {
  constexpr auto nobody = static_cast<uid_t>(-1);
  struct stat now {};
  if (::fstat(descriptor, &now) != 0) return;
  const bool owner = now.st_uid == old.st_uid || ::fchown(descriptor, old.st_uid, old.st_gid) == 0;
  const bool group = ::fstat(descriptor, &now) == 0 &&
                     (now.st_gid == old.st_gid || ::fchown(descriptor, nobody, old.st_gid) == 0);
  mode_t mode = old.st_mode & 07777u;
  if (!owner) mode &= ~mode_t{S_ISUID};
  if (!group) mode = (mode & ~mode_t{S_ISGID | S_IRWXG}) | ((mode & S_IRWXO) << 3u);
  static_cast<void>(::fchmod(descriptor, mode));  // file systems without modes have none to lose
}

}  // namespace ferry::detail
