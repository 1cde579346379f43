// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace ferry::detail {

/// Gives a new file the owner, group and mode of the one that it will replace, if this process may. It
/// is open to nobody who could not open the old one: the mode of a group that can't be kept becomes that of
/// all others, and a program does not run as another user.
void take_rights(int descriptor, const struct stat& old) noexcept;

}  // namespace ferry::detail
