// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/version.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The file of a machine's profile: one `key value` per line.
namespace ferry::detail {

/// The machine and the versions that a profile is valid for. A file of another machine or version is not
/// used.
struct machine_identity {
  std::string device;
  std::string driver;
  std::string threads;  ///< of the host execution space
  /// Another version may define the numbers otherwise.
  std::string ferry =
      joined(FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH, " rule 1");
};

/// A line: the key up to the first blank, the value after it.
struct profile_line {
  std::string_view key;
  std::string_view value;
};

std::string in_quotes(std::string_view text);

/// Reads the lines; empty ones and those that begin with # are left out. For invalid text it sets `why` and
/// returns the lines read so far. The lines point into `text`.
std::vector<profile_line> read_lines(std::string_view text, std::string& why);

/// Appends a line. Control characters of the value become blanks.
void add_line(std::string& text, std::string_view key, std::string_view value);

/// The number that the whole text is; none for other text, infinities and NaN.
std::optional<double> number_of(std::string_view text);

/// The shortest text that reads back as the same number, independent of the locale.
std::string number_text(double value);

std::string to_text(const machine_profile& profile, const machine_identity& identity);

/// Fills `profile` from the text of a file. Returns an empty string, or why the file can't be used; it is
/// then unchanged. `malformed` is set for a file that is not a profile, and cleared for one of another
/// machine.
std::string from_text(std::string_view text, const machine_identity& identity, machine_profile& profile,
                      bool& malformed);

/// $FERRY_PROFILE; null if it is unset or empty.
inline const char* named_profile() {
  const char* named = std::getenv("FERRY_PROFILE");
  return named != nullptr && *named != '\0' ? named : nullptr;
}

/// $FERRY_PROFILE, else ${XDG_CACHE_HOME:-$HOME/.cache}/ferry/profile-<backend>.txt; empty if none is
/// set.
std::string profile_path(std::string_view backend);

/// The contents of the file. Sets `why` if it can't be read, and `missing` if it does not exist. A
/// profile has about 2000 bytes.
std::string read_text(const std::string& path, std::string& why, bool& missing);

/// Throws io_error where the path names something that a file must not replace: a device, a pipe, a socket, a
/// folder, or a symbolic link to anything. Accepts a path that does not exist or can't be examined.
void require_replaceable(const std::string& path);

/// Writes the file as a whole, see atomic_file, so that no other program reads an incomplete one. Makes
/// missing folders. Throws io_error, naming the path, and if require_replaceable does.
void write_text(const std::string& path, const std::string& text);

}  // namespace ferry::detail
