// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_folder.hpp>

#include <ferry/io/detail/atomic_file.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/manifest_reader.hpp>
#include <ferry/io/detail/manifest_writer.hpp>
#include <ferry/memory/detail/file_rights.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::detail {
namespace {

constexpr std::string_view data_magic = "ferrydat";
constexpr std::uint64_t largest_number = std::uint64_t{1} << 62;

/// The number of a data file's name; 0 for other names.
std::uint64_t data_number(const std::string& name) {
  if (name.rfind("data-", 0) != 0 || name.size() < 6 || name.size() > 24) return 0;
  if (name.find_first_not_of("0123456789", 5) != std::string::npos) return 0;
  errno = 0;
  const auto number = std::strtoull(name.c_str() + 5, nullptr, 10);
  return errno == 0 && number <= largest_number ? number : 0;
}

/// True if a file begins as ferry's data files do, or is empty: one of the user's may have such a name, too.
bool is_data_file(const std::string& path) {
  file source("checkpoint", path);
  if (!source.open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK) || !S_ISREG(source.status().st_mode))
    return false;
  char start[8] = {};
  const ssize_t got = ::pread(source.descriptor(), start, sizeof start, 0);
  return got == 0 || (got == 8 && std::string_view(start, sizeof start) == data_magic);
}

}  // namespace

std::string manifest_path(const std::string& folder) { return folder + "/manifest"; }

std::string data_path(const std::string& folder, std::uint64_t number) {
  return folder + "/data-" + std::to_string(number);
}

std::vector<std::string> names_in(const std::string& folder) {
  struct closer {
    void operator()(DIR* open) const { closedir(open); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, closer> open(opendir(folder.c_str()));
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open.get())) names.emplace_back(entry->d_name);
  return names;
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return sync_folder(open_folder("checkpoint", folder_of(path)));
  const int reason = errno;
  struct stat status {};
  if (reason == EEXIST && ::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return;
    throw_io_error("checkpoint", path, "it is a file, and a checkpoint is a folder");
  }
  errno = reason;
  throw_errno("checkpoint", path, "make the folder");
}

folder_lock::folder_lock(const std::string& folder) : file_("checkpoint", folder) {
  if (!file_.open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0666))
    throw_errno("checkpoint", folder, "open its lock");
  int result = 0;
  do {
    result = ::flock(file_.descriptor(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno == EWOULDBLOCK) file_.fail("another checkpoint object or process is saving into it");
  // File systems without locks (ENOSYS: Lustre without -o flock): nothing to do.
  if (errno != ENOLCK && errno != ENOTSUP && errno != EINVAL && errno != ENOSYS) file_.fail_by_errno("lock");
}

folder_lock::~folder_lock() {
  if (process_.is_here()) static_cast<void>(::flock(file_.descriptor(), LOCK_UN));
}

folder_guard::folder_guard(const std::string& folder, folder_use how) : folder_("checkpoint", folder) {
  if (!folder_.open(folder.c_str(), O_RDONLY | O_DIRECTORY)) return;
  int result = 0;
  do {
    result = ::flock(folder_.descriptor(), how == folder_use::reads ? LOCK_SH : LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  refused_ = result != 0 && errno == EWOULDBLOCK;
}

folder_guard::~folder_guard() {
  if (folder_.is_open()) static_cast<void>(::flock(folder_.descriptor(), LOCK_UN));
}

std::string manifest_bytes(const std::string& folder, bool* missing) {
  const std::string path = manifest_path(folder);
  if (missing != nullptr) {
    struct stat status {};
    *missing = ::stat(path.c_str(), &status) != 0 && errno == ENOENT;
    if (*missing) return {};
  } else {
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
        ::stat(path.c_str(), &status) != 0 && errno == ENOENT)
      throw_io_error("checkpoint", folder, "it holds no complete checkpoint: there is no manifest");
  }
  const file source = file::open_to_read("checkpoint", path);
  const std::uint64_t size = source.size();
  if (size > std::uint64_t{1} << 32) source.fail("it is too long for a manifest");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  source.read_at(bytes.data(), bytes.size(), 0);
  return bytes;
}

manifest read_manifest(const std::string& folder, bool* missing) {
  const std::string bytes = manifest_bytes(folder, missing);
  if (missing != nullptr && *missing) return {};
  return manifest_reader(bytes, manifest_path(folder)).read();
}

void write_manifest(const std::string& folder, const manifest& content) {
  const std::string bytes = encode(content);
  atomic_file target("checkpoint", manifest_path(folder));
  target.content().write_at(bytes.data(), bytes.size(), 0);
  target.commit();
}

void remove_leftovers(const std::string& folder, const manifest& current) noexcept {
  try {
    const folder_guard alone(folder, folder_use::removes);
    if (alone.is_refused()) return;
    for (const auto& name : names_in(folder)) {
      bool needed = true;
      if (const std::uint64_t number = data_number(name); number != 0)
        needed = std::any_of(current.files.begin(), current.files.end(),
                             [&](const manifest_file& data) { return data.number == number; }) ||
                 !is_data_file(path_in(folder, name));
      else if (name.rfind("manifest.", 0) == 0 && name.size() > 5 && name.substr(name.size() - 5) == ".part")
        needed = false;
      if (!needed) ::unlink(path_in(folder, name).c_str());
    }
  } catch (const std::exception&) {  // no memory: they stay
  }
}

std::uint64_t next_number(const std::string& folder, const manifest& current) {
  std::uint64_t last = current.number;
  for (const auto& name : names_in(folder)) last = std::max(last, data_number(name));
  if (last >= largest_number)
    throw_io_error("checkpoint", folder, "its manifest has the number " + std::to_string(last));
  return last + 1;
}

std::vector<std::byte> data_header(std::uint64_t number) {
  std::vector<std::byte> header(data_header_bytes);
  const std::uint32_t version = data_version;
  std::memcpy(header.data(), data_magic.data(), data_magic.size());
  std::memcpy(header.data() + 8, &version, sizeof version);
  std::memcpy(header.data() + 16, &number, sizeof number);
  return header;
}

new_data_file::new_data_file(const std::string& folder, std::uint64_t number)
    : path_(data_path(folder, number)), content_("checkpoint", path_) {
  struct stat old {};
  const bool exists = ::stat(manifest_path(folder).c_str(), &old) == 0 && S_ISREG(old.st_mode);
  const auto header = data_header(number);
  if (!content_.open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, exists ? 0600 : 0666))
    throw_errno("checkpoint", path_, "create the file");
  created_ = true;
  try {
    if (exists) take_rights(content_.descriptor(), old);  // who may read the manifest may read the data
    content_.write_at(header.data(), header.size(), 0);
  } catch (...) {
    drop();
    throw;
  }
}

new_data_file::~new_data_file() { drop(); }

void new_data_file::finish() {
  content_.sync();
  content_.close();
}

void new_data_file::drop() {
  if (created_ && process_.is_here()) ::unlink(path_.c_str());
  created_ = false;
}

}  // namespace ferry::detail
