// SPDX-License-Identifier: Apache-2.0

#include <ferry/extend.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Lines about files that are skipped.
struct skipped_files {
  std::mutex guard;
  std::set<std::string> said;
};

namespace {

constexpr std::string_view data_magic = "ferrydat";
constexpr std::uint64_t largest_number = std::uint64_t{1} << 62;

constexpr std::string_view data_file = "data-", digests_file = "digests-", old_manifest = "manifest-",
                           name_prefix = "named-", unfinished = ".part";

/// The number in the name of a data file, or of the manifest of an older generation; 0 for other names.
std::uint64_t number_after(std::string_view prefix, const std::string& name) {
  if (!name.starts_with(prefix) || name.size() == prefix.size() || name.size() > prefix.size() + 19) return 0;
  if (name.find_first_not_of("0123456789", prefix.size()) != std::string::npos) return 0;
  errno = 0;
  const auto number = std::strtoull(name.c_str() + prefix.size(), nullptr, 10);
  return errno == 0 && number <= largest_number ? number : 0;
}

/// Empty for a name that is part of a file's name, else the reason.
std::string why_no_name(std::string_view name) {
  if (name.empty() || name.size() > 100) return "has " + std::to_string(name.size()) + " bytes";
  for (const char letter : name)
    if (std::string_view("_-.").find(letter) == std::string_view::npos && (letter < '0' || letter > '9') &&
        (letter < 'a' || letter > 'z') && (letter < 'A' || letter > 'Z'))
      return "has byte " + std::to_string(static_cast<unsigned char>(letter));
  return name.ends_with(unfinished) ? "does" : "";
}

bool is_manifest_with_name(const std::string& name) {
  return name.starts_with(name_prefix) &&
         why_no_name(std::string_view(name).substr(name_prefix.size())).empty();
}

/// The temporary file of a manifest or of digests, of a save that was killed.
bool is_unfinished(const std::string& name) {
  return name.size() > unfinished.size() && name.ends_with(unfinished) &&
         (name.starts_with("manifest.") || name.starts_with(old_manifest) || name.starts_with(name_prefix) ||
          name.starts_with(digests_file));
}

/// The files of a folder; none if it does not exist. Throws if it can't be listed.
std::vector<std::string> files_in(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    throw_errno("checkpoint", folder, "stat");
  }
  if (::access(folder.c_str(), R_OK | X_OK) != 0) throw_errno("checkpoint", folder, "list the folder");
  return names_in(folder);
}

/// The content of a manifest; none if it is absent. Everything else that is wrong is an error.
std::optional<std::string> bytes_of_manifest(const std::string& path) {
  try {
    const file source = file::open_to_read("checkpoint", path);
    const std::uint64_t size = source.size();
    if (size > longest_manifest) source.fail(joined("it has ", size, " bytes, too many for a manifest"));
    std::string bytes(static_cast<std::size_t>(size), '\0');
    source.read_at(bytes.data(), bytes.size(), 0);
    return bytes;
  } catch (const not_found&) {
    return std::nullopt;
  }
}

/// 0 if the bytes have none.
std::uint64_t number_of_manifest(std::string_view bytes) {
  std::uint64_t number = 0;
  if (bytes.size() >= 24) std::memcpy(&number, bytes.data() + 16, sizeof number);
  return number;
}

/// The header of a file; nothing if there is none, or no regular one. False if it can't be read.
bool read_start(const std::string& path, std::string& start) {
  file source("checkpoint", path);
  if (!source.open(path.c_str(), O_RDONLY | O_NONBLOCK)) return errno == ENOENT;
  if (!S_ISREG(source.status().st_mode)) return true;
  start.resize(manifest_header_bytes);
  const ssize_t got = ::pread(source.descriptor(), start.data(), start.size(), 0);
  start.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got >= 0;
}

/// The data files that stay, because a manifest names them or may name them.
class needed_data {
 public:
  void add(const manifest& content) {
    for (const auto& data : content.files) numbers_.push_back(data.number);
  }
  /// Adds those of a manifest's file. Says on stderr, once, why a file is none that can be read.
  void add_file(const std::string& path) {
    std::string bytes;
    try {
      const auto content = bytes_of_manifest(path);
      bytes = content.value_or("");
      if (content) add(decode(bytes, path));
    } catch (const io_error& why) {
      const bool is_read = !bytes.empty() || read_start(path, bytes);
      if (is_read && !is_manifest(bytes))
        return say_once("ferry::io::checkpoint: " + path +
                        ": it is no checkpoint, though it has the name of one; it is skipped");
      const std::uint64_t last = is_read ? last_data_file(bytes) : largest_number;
      last_ = std::max(last_, last);
      say_once(std::string(why.what()) +
               (last < largest_number ? "; the data files up to number " + std::to_string(last)
                                      : "; all data files") +
               " stay for it");
    }
  }
  [[nodiscard]] bool has(std::uint64_t number) const {
    return number <= last_ || std::find(numbers_.begin(), numbers_.end(), number) != numbers_.end();
  }

 private:
  static void say_once(const std::string& words) {
    static skipped_files& skipped = process_wide<skipped_files>();
    const std::lock_guard lock(skipped.guard);
    if (skipped.said.insert(words).second) std::fprintf(stderr, "ferry: %s\n", words.c_str());
  }

  std::vector<std::uint64_t> numbers_;
  std::uint64_t last_ = 0;  ///< all up to this one
};

/// The number of a manifest's file; 0 if it is no manifest, or the number is larger than that of a save.
std::uint64_t number_of_file(const std::string& path) {
  std::string start;
  const bool is_read = read_start(path, start) && is_manifest(start);
  const std::uint64_t number = is_read ? number_of_manifest(start) : 0;
  return number < largest_number ? number : 0;
}

template <class Items, class Words>
std::string words_of_list(const Items& items, const Words& words) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ", ") + words(item);
  return list.empty() ? "none" : list;
}

[[noreturn]] void throw_not_found(const std::string& folder, const checkpoint_choice& choice) {
  const auto number_words = [](std::uint64_t number) { return std::to_string(number); };
  struct stat status {};
  std::string problem;
  if (::stat(folder.c_str(), &status) != 0 && errno == ENOENT) {
    problem = "there is no such folder, and no checkpoint";
  } else if (!choice.name.empty()) {
    problem =
        "it holds no checkpoint named '" + choice.name + "'; the named ones are: " +
        words_of_list(checkpoint_names_in(folder), [](const std::string& name) { return "'" + name + "'"; });
  } else if (choice.generation != 0) {
    problem = "it holds no generation " + std::to_string(choice.generation) +
              "; its generations are: " + words_of_list(generations_in(folder), number_words);
  } else {
    const auto older = generations_in(folder);
    problem = "it holds no complete checkpoint: there is no manifest";
    if (!older.empty())
      problem += ", but load_options::generation finds older ones: " + words_of_list(older, number_words);
  }
  throw not_found("ferry::io::checkpoint: " + folder + ": " + problem);
}

/// True if a file is known to have this content.
bool has_content(const std::string& path, const std::string& bytes) noexcept {
  try {
    return bytes_of_manifest(path) == bytes;
  } catch (const std::exception&) {
    return false;
  }
}

/// True if a file begins as ferry's do, or is empty: one of the user's may have such a name, too.
bool has_magic(const std::string& path, std::string_view magic) {
  file source("checkpoint", path);
  if (!source.open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK) || !S_ISREG(source.status().st_mode))
    return false;
  char start[8] = {};
  const ssize_t got = ::pread(source.descriptor(), start, sizeof start, 0);
  return got == 0 || (got == 8 && std::string_view(start, sizeof start) == magic);
}

}  // namespace

void require_checkpoint_name(const char* verb, const std::string& name) {
  if (name.empty()) return;
  if (const std::string why = why_no_name(name); !why.empty())
    throw invalid_argument(joined(
        "ferry::io::checkpoint::", verb,
        ": the name of a checkpoint has 1 to 100 letters, digits, '_', '-' and '.', and does not end with '.part'; this one ",
        why, ": '", name.substr(0, 120), "'"));
}

std::string manifest_path(const std::string& folder) { return folder + "/manifest"; }

std::string manifest_path(const std::string& folder, const checkpoint_choice& choice) {
  return folder + "/" +
         (choice.name.empty() ? std::string(old_manifest) + std::to_string(choice.generation)
                              : std::string(name_prefix) + choice.name);
}

std::string data_path(const std::string& folder, std::uint64_t number) {
  return folder + "/data-" + std::to_string(number);
}

std::string digests_path(const std::string& folder, std::uint64_t number) {
  return path_in(folder, std::string(digests_file) + std::to_string(number));
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

folder_lock::folder_lock(const std::string& folder, folder_use use) : file_("checkpoint", folder) {
  const bool is_save = use == folder_use::saves;
  if (is_save ? !file_.open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0666)
              : !file_.open(folder.c_str(), O_RDONLY | O_DIRECTORY)) {
    if (is_save) throw_errno("checkpoint", folder, "open its lock");
    return;
  }
  int result = 0;
  do {
    result = ::flock(file_.descriptor(), use == folder_use::reads ? LOCK_SH : LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  refused_ = result != 0 && errno == EWOULDBLOCK;
  if (result == 0 || !is_save) return;
  if (refused_) file_.fail("another checkpoint object or process is saving into it");
  // File systems without locks (ENOSYS: Lustre without -o flock): nothing to do.
  if (errno != ENOLCK && errno != ENOTSUP && errno != EINVAL && errno != ENOSYS) file_.fail_by_errno("lock");
}

folder_lock::~folder_lock() {
  if (file_.is_open() && process_.is_here()) static_cast<void>(::flock(file_.descriptor(), LOCK_UN));
}

std::optional<std::string> find_manifest(const std::string& folder, const checkpoint_choice& choice) {
  if (!choice.name.empty()) return bytes_of_manifest(manifest_path(folder, choice));
  auto newest = bytes_of_manifest(manifest_path(folder));
  // A save gives a generation its number before another one replaces it, so one of the two is there.
  if (choice.generation != 0 && (!newest || number_of_manifest(*newest) != choice.generation))
    return bytes_of_manifest(manifest_path(folder, choice));
  return newest;
}

std::string manifest_bytes(const std::string& folder, const checkpoint_choice& choice) {
  auto bytes = find_manifest(folder, choice);
  if (!bytes) throw_not_found(folder, choice);
  return std::move(*bytes);
}

manifest read_manifest(const std::string& folder, bool* missing, const checkpoint_choice& choice) {
  const auto bytes = find_manifest(folder, choice);
  if (missing != nullptr) *missing = !bytes;
  if (!bytes && missing != nullptr) return {};
  if (!bytes) throw_not_found(folder, choice);
  const bool is_newest = choice.name.empty() && choice.generation == 0;
  return decode(*bytes, is_newest ? manifest_path(folder) : manifest_path(folder, choice));
}

std::vector<std::uint64_t> generations_in(const std::string& folder) {
  constexpr int most_looks = 64;
  for (int look = 1;; ++look) {
    // The newest one first: a save that comes between the two looks lists it among the older ones.
    const auto newest = find_manifest(folder);
    std::vector<std::uint64_t> numbers;
    for (const auto& name : files_in(folder))
      if (const std::uint64_t number = number_after(old_manifest, name); number != 0)
        numbers.push_back(number);
    // Several saves meanwhile may have removed generations that the list has not come to.
    if (newest && look < most_looks && !has_content(manifest_path(folder), *newest)) continue;
    if (const std::uint64_t number = newest ? number_of_manifest(*newest) : 0; number != 0)
      numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }
}

std::vector<std::string> checkpoint_names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& name : files_in(folder))
    if (std::string start;
        is_manifest_with_name(name) && (!read_start(path_in(folder, name), start) || is_manifest(start)))
      names.push_back(name.substr(name_prefix.size()));
  std::sort(names.begin(), names.end());
  return names;
}

void write_whole(const std::string& path, const std::string& bytes, const std::string& folder) {
  atomic_file target("checkpoint", path, file_links::replaced);
  struct stat newest {};
  if (path != manifest_path(folder) && ::stat(manifest_path(folder).c_str(), &newest) == 0 &&
      S_ISREG(newest.st_mode))
    take_rights(target.content().descriptor(), newest);
  target.content().write_at(bytes.data(), bytes.size(), 0);
  target.commit();
}

void write_manifest(const std::string& folder, const manifest& content, const checkpoint_target& target) {
  const std::string bytes = encode(content);
  if (bytes.size() > longest_manifest)
    throw_io_error("checkpoint", manifest_path(folder),
                   joined("it would have ", bytes.size(), " bytes, and the most are ", longest_manifest));
  if (!target.name.empty()) return write_whole(manifest_path(folder, {0, target.name}), bytes, folder);
  // A link is replaced. What it refers to is no generation of this folder, and its data may lie elsewhere.
  struct stat newest {};
  const bool keeps_none =
      target.keep <= 1 || (::lstat(manifest_path(folder).c_str(), &newest) == 0 && S_ISLNK(newest.st_mode));
  const auto before = keeps_none ? std::nullopt : find_manifest(folder);
  if (!before) return write_whole(manifest_path(folder), bytes, folder);
  const std::string copy = manifest_path(folder, {number_of_manifest(*before), {}});
  write_whole(copy, *before, folder);
  try {
    write_whole(manifest_path(folder), bytes, folder);
  } catch (...) {
    if (has_content(manifest_path(folder), *before)) ::unlink(copy.c_str());
    throw;
  }
}

void remove_generations(const std::string& folder, const manifest& current,
                        const checkpoint_target& target) noexcept {
  if (!target.name.empty()) return;
  try {
    std::vector<std::uint64_t> old;
    for (const auto& name : names_in(folder))
      if (const std::uint64_t number = number_after(old_manifest, name);
          number != 0 && number != current.number)
        old.push_back(number);
    std::sort(old.begin(), old.end(), std::greater<>());
    const auto most = static_cast<std::size_t>(std::max(1, target.keep)) - 1;
    for (std::size_t i = most; i < old.size(); ++i) ::unlink(manifest_path(folder, {old[i], {}}).c_str());
  } catch (const std::exception&) {  // no memory: they stay
  }
}

void remove_leftovers(const std::string& folder, const manifest& current) noexcept {
  try {
    const folder_lock alone(folder, folder_use::removes);
    if (alone.is_refused()) return;
    const auto names = names_in(folder);
    for (const auto& name : names)
      if (is_unfinished(name)) ::unlink(path_in(folder, name).c_str());
    needed_data needed;
    needed.add(current);
    // The number of the newest generation is its own. A named checkpoint may have that of a generation, of
    // saves by different numbers of ranks.
    const std::uint64_t newest = number_of_manifest(find_manifest(folder).value_or(""));
    if (newest != current.number) needed.add_file(manifest_path(folder));
    for (const auto& name : names) {
      const std::string path = path_in(folder, name);
      if (number_after(old_manifest, name) != 0 || is_manifest_with_name(name)) needed.add_file(path);
      if (const std::uint64_t number = number_after(digests_file, name);
          number != 0 && number != newest && has_magic(path, digests_magic))
        ::unlink(path.c_str());
    }
    bool synced = false;
    for (const auto& name : names)
      if (const std::uint64_t number = number_after(data_file, name);
          number != 0 && !needed.has(number) && has_magic(path_in(folder, name), data_magic)) {
        // A manifest that was removed must not come back, after a loss of power, without its data.
        if (!std::exchange(synced, true)) sync_folder(open_folder("checkpoint", folder));
        ::unlink(path_in(folder, name).c_str());
      }
  } catch (const std::exception&) {  // no memory: they stay
  }
}

std::uint64_t next_number(const std::string& folder, const manifest& current) {
  std::uint64_t last = current.number;
  for (const auto& name : names_in(folder)) {
    last = std::max({last, number_after(data_file, name), number_after(old_manifest, name)});
    // The number of a save by ranks is that of its last rank, which may have no data file.
    if (is_manifest_with_name(name)) last = std::max(last, number_of_file(path_in(folder, name)));
  }
  if (last >= largest_number)
    throw_io_error("checkpoint", folder, joined("its manifest has the number ", last));
  return last + 1;
}

std::vector<std::byte> data_header(std::uint64_t number) {
  std::vector<std::byte> header(data_header_bytes);
  constexpr std::uint32_t version = 1;
  std::memcpy(header.data(), data_magic.data(), data_magic.size());
  std::memcpy(header.data() + 8, &version, sizeof version);
  std::memcpy(header.data() + 16, &number, sizeof number);
  return header;
}

checkpoint_files::checkpoint_files(const std::string& folder, const manifest& content, bool* gone) {
  // Files that are open can be read whoever removes them; the others must stay.
  if (content.files.size() > most_data_files) keeps_all_.emplace(folder, folder_use::reads);
  files_.reserve(content.files.size());
  std::vector<std::byte> header(data_header_bytes);
  for (const auto& entry : content.files) {
    files_.emplace_back(data_path(folder, entry.number));
    const file& data = files_.back().content;
    if (!open(files_.back())) {
      if (errno == ENOENT && gone != nullptr) {
        *gone = true;
        return;
      }
      fail_to_open(data);
    }
    if (!S_ISREG(data.status().st_mode)) data.fail("it is no regular file");
    if (const std::uint64_t size = data.size(); size != entry.bytes)
      data.fail(joined("it has ", size, " bytes, and the manifest says ", entry.bytes));
    data.read_at(header.data(), header.size(), 0);
    if (header != data_header(entry.number))
      data.fail(joined("its header is not that of data file ", entry.number));
  }
}

void checkpoint_files::read_chunk(const manifest_array& array, std::size_t index, std::byte* target,
                                  std::vector<std::byte>& scratch, const std::string& subject) const {
  const manifest_chunk& chunk = array.chunks[index];
  const auto bytes = static_cast<std::size_t>(array.bytes_of_chunk(index));
  read_piece(chunk.piece, bytes, target, subject);
  for (const auto& patch : chunk.patches) {
    const std::size_t unit = array.unit_bytes;
    const std::size_t positions = patch.units * sizeof(std::uint32_t);
    scratch.resize(positions + patch.units * unit);
    read_piece(patch.piece, scratch.size(), scratch.data(), subject);
    for (std::size_t i = 0; i < patch.units; ++i) {
      std::uint32_t position = 0;
      std::memcpy(&position, scratch.data() + i * sizeof position, sizeof position);
      const std::size_t begin = position * unit;
      if (begin >= bytes)
        files_[patch.piece.file].content.fail(
            joined("a patch of ", subject, " names unit ", position, ", which lies beyond its chunk"));
      std::memcpy(target + begin, scratch.data() + positions + i * unit, std::min(unit, bytes - begin));
    }
  }
}

void checkpoint_files::read_array(const manifest_array& array, void* target,
                                  const std::string& subject) const {
  std::vector<std::byte> scratch;
  for (std::size_t index = 0; index < array.chunks.size(); ++index)
    read_chunk(array, index, static_cast<std::byte*>(target) + index * array.chunk_bytes, scratch, subject);
}

void checkpoint_files::read_piece(const manifest_piece& piece, std::size_t bytes, std::byte* target,
                                  const std::string& subject) const {
  data_file& entry = files_[piece.file];
  const file& data = entry.content;
  {
    const std::lock_guard lock(guard_);
    if (!open(entry)) fail_to_open(data);
    ++entry.users;
  }
  const auto leave = [this](data_file* file_in_use) {
    const std::lock_guard lock(guard_);
    --file_in_use->users;
  };
  const std::unique_ptr<data_file, decltype(leave)> use(&entry, leave);  // keeps the file open
  data.read_at(target, bytes, piece.offset);
  if (const auto checksum = crc32c(target, bytes); checksum != piece.checksum)
    data.fail(joined(subject, " is damaged: the checksum of ", bytes, " bytes at byte ", piece.offset, " is ",
                     checksum, ", and the manifest says ", piece.checksum));
}

bool checkpoint_files::open(data_file& data) const noexcept {
  data.last_use = ++uses_;
  if (data.content.is_open()) return true;
  if (open_ >= most_data_files) close_oldest();
  while (!data.content.open(data.content.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) {
    const int reason = errno;
    // The process has no descriptor left, or another thread has taken the one that became free.
    if ((reason == EMFILE || reason == ENFILE) && close_oldest()) continue;
    errno = reason;
    return false;
  }
  ++open_;
  return true;
}

void checkpoint_files::fail_to_open(const file& data) {
  if (errno == ELOOP) data.fail("it is a symbolic link");
  data.fail_by_errno("open");
}

bool checkpoint_files::close_oldest() const noexcept {
  data_file* oldest = nullptr;
  for (auto& data : files_)
    if (data.content.is_open() && data.users == 0 && (oldest == nullptr || data.last_use < oldest->last_use))
      oldest = &data;
  if (oldest == nullptr) return false;
  oldest->content.drop();
  --open_;
  return true;
}

piece_file::piece_file(const std::string& folder, std::uint64_t number)
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

void piece_file::drop() {
  if (created_ && process_.is_here()) ::unlink(path_.c_str());
  created_ = false;
}

manifest_piece piece_file::append(const std::byte* source, std::size_t bytes) {
  constexpr std::uint64_t alignment = 64;
  constexpr std::size_t part_bytes = std::size_t{1} << 18;
  manifest_piece piece;
  piece.file = fresh;
  piece.offset = end_.fetch_add((bytes + alignment - 1) / alignment * alignment);
  // Small parts are still in the cache when they are written.
  for (std::size_t position = 0; position < bytes;) {
    const std::size_t count = std::min(part_bytes, bytes - position);
    piece.checksum = crc32c(source + position, count, piece.checksum);
    content_.write_at(source + position, count, piece.offset + position);
    position += count;
  }
  content_.start_write_back(piece.offset, bytes);
  return piece;
}

void piece_file::abandon() noexcept {
  if (!content_.is_open()) return;
  [[maybe_unused]] const int result = ::ftruncate(content_.descriptor(), 0);
}

bool may_be_current(const std::string& folder, std::uint64_t number,
                    const checkpoint_target& target) noexcept {
  try {
    bool missing = false;
    return read_manifest(folder, &missing, {0, target.name}).number == number && !missing;
  } catch (...) {
    return true;
  }
}

}  // namespace ferry::detail
