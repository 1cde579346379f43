// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/file.hpp>
#include <ferry/memory/detail/file_rights.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

namespace ferry::detail {

/// The path at the end of a chain of symbolic links, which need not exist.
template <class...>
std::string behind_links(const std::string& verb, const std::string& path) {
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    struct stat found {};
    if (::lstat(at.c_str(), &found) != 0 || !S_ISLNK(found.st_mode)) return at;
    std::string target(4096, '\0');
    const ssize_t length = ::readlink(at.c_str(), target.data(), target.size());
    if (length < 0) throw_errno(verb, at, "readlink");
    target.resize(static_cast<std::size_t>(length));
    at = !target.empty() && target.front() == '/' ? target : path_in(folder_of(at), target);
  }
  errno = ELOOP;
  throw_errno(verb, path, "readlink");
}

/// A file that appears as a whole or not at all. The content is written to a temporary file in the same
/// folder; commit() brings it to the disk, gives it its name, and brings the name to the disk. Without
/// commit(), after an exception say, the temporary file is removed and an old file of that name is as it was.
/// A process that is killed leaves the temporary file, "<name>.<process>-<number>.part".
///
/// A symbolic link is followed: the file that it names is replaced, and the link stays. The new file has the
/// owner and the permissions of the old one, as far as this process may give them; without an old one those
/// that the umask gives.
template <class Dependent>
class basic_atomic_file {
 public:
  /// Throws io_error where the path names a folder, device or pipe, or where its folder takes no new file.
  basic_atomic_file(const std::string& verb, const std::string& path)
      : content_(verb, path), final_(behind_links(verb, path)) {
    struct stat old {};
    const bool exists = ::stat(final_.c_str(), &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
      throw_io_error(verb, path,
                     S_ISDIR(old.st_mode) ? "it is a folder, not a file" : "it is no regular file");
    const std::string folder = folder_of(final_);
    const std::size_t slash = final_.rfind('/');
    // A name has at most 255 bytes.
    const std::string name = final_.substr(slash == std::string::npos ? 0 : slash + 1).substr(0, 200);
    if (name.empty()) throw_io_error(verb, path, "it names no file");
    // Until it has the rights of the old file it is open to its owner alone.
    const unsigned mode = exists ? 0600 : 0666;
    for (int number = 0; number < most_names; ++number) {
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
  basic_atomic_file(const basic_atomic_file&) = delete;
  basic_atomic_file& operator=(const basic_atomic_file&) = delete;
  ~basic_atomic_file() {
    if (!temporary_.empty() && process_.is_here()) ::unlink(temporary_.c_str());
  }

  /// Where the content is written to.
  [[nodiscard]] const file& content() const noexcept { return content_; }

  /// Gives the file its name. Where it throws, the old file is as it was, unless only the folder's fsync
  /// failed: then either file may be there after a loss of power.
  void commit() {
    const std::string verb = content_.verb();
    const std::string path = content_.path();
    const file folder = open_folder(verb, folder_of(final_));  // no step after the rename takes memory
    content_.sync();
    content_.close();
    if (std::rename(temporary_.c_str(), final_.c_str()) != 0) throw_errno(verb, path, "rename");
    temporary_.clear();
    sync_folder(folder);
  }

 private:
  static constexpr int most_names = 10000;

  file content_;
  std::string final_;
  std::string temporary_;  ///< empty once there is none
  process_mark process_;
};
using atomic_file = basic_atomic_file<void>;

}  // namespace ferry::detail
