// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/atomic_file.hpp>

#include <ferry/memory/detail/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>

namespace ferry::detail {

std::string behind_links(const std::string& verb, const std::string& path) {
  std::string current = path;
  for (int links = 0; links < 40; ++links) {
    struct stat status {};
    if (::lstat(current.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return current;
    std::string target(4096, '\0');
    const ssize_t length = ::readlink(current.c_str(), target.data(), target.size());
    if (length < 0) throw_errno(verb, current, "readlink");
    target.resize(static_cast<std::size_t>(length));
    current = !target.empty() && target.front() == '/' ? target : path_in(folder_of(current), target);
  }
  errno = ELOOP;
  throw_errno(verb, path, "readlink");
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
