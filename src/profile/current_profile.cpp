// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/current_profile.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

namespace ferry::detail {

std::string in_quotes(std::string_view text) { return std::string("\"").append(text).append("\""); }

std::vector<profile_line> read_lines(std::string_view text, std::string& why) {
  std::vector<profile_line> lines;
  const auto stop = [&](const std::string& reason) {
    why = reason;
    return lines;
  };
  if (text.substr(0, text.find_first_not_of(" \t\r\n") + 1).ends_with('{'))
    return stop("is a JSON object, as earlier versions of ferry wrote; ferry::calibrate writes a new file");
  if (!text.ends_with('\n')) return stop("does not end with a line feed, so it was cut off");
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == std::string_view::npos)
      return stop(joined("has no key and value in line ", number));
    const profile_line entry{line.substr(0, blank), line.substr(blank + 1)};
    for (const profile_line& earlier : lines)
      if (earlier.key == entry.key)
        return stop(joined("has ", in_quotes(entry.key), " a second time in line ", number));
    lines.push_back(entry);
  }
  return lines;
}

void add_line(std::string& text, std::string_view key, std::string_view value) {
  text.append(key).push_back(' ');
  for (const char c : value) text.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  text.push_back('\n');
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end || !is_finite(number)) return std::nullopt;
  return number;
}

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string to_text(const machine_profile& profile, const machine_identity& identity) {
  std::string text;
  add_line(text, "ferry", identity.ferry);
  add_line(text, "device", identity.device);
  add_line(text, "driver", identity.driver);
  add_line(text, "threads", identity.threads);
  std::string measured;
  for (std::size_t i = 0; i < reading_names.size(); ++i)
    if ((profile.measured >> i & 1u) != 0u)
      measured.append(measured.empty() ? "" : " ").append(reading_names[i]);
  add_line(text, "measured", measured);
  for (const auto& field : profile_fields) add_line(text, field.name, number_text(profile.*field.member));
  return text;
}

std::string from_text(std::string_view text, const machine_identity& identity, machine_profile& profile,
                      bool& malformed) {
  malformed = true;
  std::string why;
  const std::vector<profile_line> lines = read_lines(text, why);
  if (!why.empty()) return why;
  const auto find = [&lines](std::string_view key) -> const profile_line* {
    for (const auto& line : lines)
      if (line.key == key) return &line;
    return nullptr;
  };
  const std::pair<std::string_view, const std::string*> names[] = {{"ferry", &identity.ferry},
                                                                   {"device", &identity.device},
                                                                   {"driver", &identity.driver},
                                                                   {"threads", &identity.threads}};
  for (const auto& [key, value] : names) {
    const profile_line* line = find(key);
    if (line == nullptr) return "lacks a line " + in_quotes(key);
    if (line->value == *value) continue;
    malformed = false;
    return "is of " + std::string(key) + " " + in_quotes(line->value) + ", not " + in_quotes(*value) +
           "; ferry::calibrate writes a new file";
  }
  machine_profile values;
  for (const auto& field : profile_fields) {
    const profile_line* line = find(field.name);
    if (line == nullptr) return "lacks a line " + in_quotes(field.name);
    const auto number = number_of(line->value);
    if (!number || !is_usable(field, *number))
      return "has " + in_quotes(line->value) + " for " + in_quotes(field.name);
    values.*field.member = *number;
  }
  const profile_line* measured = find("measured");
  if (measured == nullptr) return "lacks a line \"measured\"";
  const std::string list = " " + std::string(measured->value) + " ";
  for (std::size_t i = 0; i < reading_names.size(); ++i)
    if (list.find(" " + std::string(reading_names[i]) + " ") != std::string::npos) values.measured |= 1u << i;
  malformed = false;
  profile = values;
  return {};
}

const char* profile_variable() {
  const char* variable = std::getenv("FERRY_PROFILE");
  return variable != nullptr && *variable != '\0' ? variable : nullptr;
}

std::string profile_path(std::string_view backend) {
  if (const char* variable = profile_variable()) return variable;
  std::string folder;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* user_folder = std::getenv("HOME");
  if (cache != nullptr && *cache == '/')  // the XDG specification ignores relative paths
    folder = cache;
  else if (user_folder != nullptr && *user_folder != '\0')
    folder = std::string(user_folder) + "/.cache";
  else
    return {};
  return folder.append("/ferry/profile-").append(backend).append(".txt");
}

std::string read_text(const std::string& path, std::string& why, bool& missing) {
  constexpr std::size_t most = std::size_t{1} << 16;
  missing = false;
  const auto unreadable = [&why](const char* reason) {
    why = joined("can't be read: ", reason);
    return std::string();
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    missing = errno == ENOENT;
    return unreadable(std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode))  // opening a pipe would wait for a writer
    return unreadable(S_ISDIR(status.st_mode) ? "it is a folder" : "it is no ordinary file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (stream == nullptr) return unreadable(std::strerror(errno));
  std::string text(most + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stream.get()));
  if (std::ferror(stream.get()) != 0) return unreadable(std::strerror(errno));
  if (text.empty())
    why = "is empty";
  else if (text.size() > most)
    why = "is too long for a profile";
  return text;
}

void require_replaceable(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  const char* kind = S_ISDIR(status.st_mode)   ? "a folder"
                     : S_ISLNK(status.st_mode) ? "a symbolic link"
                                               : "no ordinary file";
  throw io_error("ferry: " + path + ": can't be written: it is " + kind);
}

void write_text(const std::string& path, const std::string& text) {
  require_replaceable(path);
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0777);  // on failure, the file reports the reason
  atomic_file target("ferry::calibrate", path);
  target.content().write_at(text.data(), text.size(), 0);
  target.commit();
}

template <ExecutionSpace Exec>
machine_identity identity_of(const Exec& exec) {
  using backend = execution_backend<Exec>;
  const typename backend::device_guard guard(exec);
  auto id = backend::device_identity();
  return {std::move(id.device), std::move(id.driver), std::to_string(host_side(exec).concurrency())};
}

template <ExecutionSpace Exec>
std::string origin_of_defaults(const Exec& exec) {
  constexpr const char* machine = "defaults (readings of one H200 on PCIe 5 x16 with 16 cores, ";
  if constexpr (is_host_exec<Exec>)
    return machine + ("taken for " + std::to_string(exec.concurrency())) +
           " host threads; not of this machine)";
  else
    return std::string(machine) + "not of this machine)";
}

/// The profile of the file, or the defaults with the reason. An unusable cache file is ignored. A file that
/// FERRY_PROFILE names must be a profile.
template <ExecutionSpace Exec>
known_profile load_profile(const Exec& exec) {
  known_profile result{default_profile(exec), origin_of_defaults(exec) + ": "};
  const std::string path = profile_path(execution_backend<Exec>::name);
  const auto defaults = [&](const std::string& reason) {
    result.origin += reason;
    return result;
  };
  if (path.empty()) return defaults("neither FERRY_PROFILE nor XDG_CACHE_HOME nor HOME is set");
  std::string why;
  bool missing = false;
  const std::string text = read_text(path, why, missing);
  if (missing) return defaults(joined("there is no ", path, ", which ferry::calibrate would write"));
  bool unusable = true;
  if (why.empty()) why = from_text(text, identity_of(exec), result.profile, unusable);
  if (why.empty()) {
    result.origin = "read from " + path;
    return result;
  }
  if (profile_variable() != nullptr && unusable)
    throw io_error(joined("ferry: the profile ", path, " (FERRY_PROFILE) ", why));
  return defaults(joined(path, " ", why));
}

/// The profiles of an execution space by device.
template <class Exec>
struct process_profiles {
  std::mutex guard;
  std::map<int, std::shared_ptr<const known_profile>> known;
};

template <ExecutionSpace Exec>
std::shared_ptr<const known_profile> profile_holder<Exec>::get(const Exec& exec) {
  require_kokkos("ferry: the profile of the machine");  // has the number of threads
  const auto profiles = until_finalize<process_profiles<Exec>>();
  const std::lock_guard lock(profiles->guard);
  auto& known = profiles->known[execution_backend<Exec>::device_of(exec)];
  if (known == nullptr) known = std::make_shared<const known_profile>(load_profile(exec));
  return known;
}

template <ExecutionSpace Exec>
void profile_holder<Exec>::set(const Exec& exec, known_profile known) {
  const auto profiles = until_finalize<process_profiles<Exec>>();
  auto entry = std::make_shared<const known_profile>(std::move(known));
  const std::lock_guard lock(profiles->guard);
  profiles->known[execution_backend<Exec>::device_of(exec)] = std::move(entry);
}

template <ExecutionSpace Exec>
void profile_holder<Exec>::forget() {
  const auto profiles = until_finalize<process_profiles<Exec>>();
  const std::lock_guard lock(profiles->guard);
  profiles->known.clear();
}

void require_usable(const machine_profile& profile) {
  for (const auto& field : profile_fields)
    if (!is_usable(field, profile.*field.member))
      throw invalid_argument(
          joined("ferry::use_profile: ", field.name, " is ", number_text(profile.*field.member)));
}

#define FERRY_PROFILES_OF(EXEC)                         \
  template machine_identity identity_of(const EXEC&);   \
  template std::string origin_of_defaults(const EXEC&); \
  template class profile_holder<EXEC>;
FERRY_FOR_EXECUTION_SPACES(FERRY_PROFILES_OF)
#undef FERRY_PROFILES_OF

}  // namespace ferry::detail
