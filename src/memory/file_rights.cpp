// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/file_rights.hpp>

namespace ferry::detail {

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
