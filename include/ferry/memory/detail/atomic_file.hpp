// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <sys/stat.h>

#include <string>

namespace ferry::detail {

/// The path at the end of a chain of symbolic links, which need not exist.
std::string behind_links(const std::string& verb, const std::string& path);

/// How a symbolic link in the place of a file is taken.
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
  static constexpr int most_names = 10000;

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
