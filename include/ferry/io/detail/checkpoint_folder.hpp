// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The checkpoints of a folder: generations, which have numbers, and those with names.
namespace ferry::detail {

/// The checkpoint that a call reads.
struct checkpoint_choice {
  std::uint64_t generation = 0;  ///< 0: the newest
  std::string name = {};         ///< of a named checkpoint; empty: a generation
};

/// The name of a new checkpoint in its folder.
struct checkpoint_target {
  int keep = 1;           ///< generations that stay, the new one included
  std::string name = {};  ///< of a named checkpoint, which is no generation; empty: the newest generation
};

/// Throws invalid_argument for a name that is no part of a file's name. An empty one is fine.
void require_checkpoint_name(const char* verb, const std::string& name);

// The folder of a checkpoint: "manifest", that of the newest generation; "manifest-<number>" of older ones;
// "named-<name>" of checkpoints with names; data files "data-<number>", which several manifests may name;
// "digests-<number>" of the newest generation; "lock".

/// Most data files that a save of changes leaves, and most that a reader has open at a time.
inline constexpr std::size_t most_data_files = 64;

std::string manifest_path(const std::string& folder);
/// That of an older generation or of a named checkpoint.
std::string manifest_path(const std::string& folder, const checkpoint_choice& choice);
std::string data_path(const std::string& folder, std::uint64_t number);
/// That of the digests of a generation, see unit_digests.hpp.
std::string digests_path(const std::string& folder, std::uint64_t number);
inline constexpr std::string_view digests_magic = "ferrydig";

/// Names of the files in a folder; none if it can't be listed.
std::vector<std::string> names_in(const std::string& folder);

/// Makes the folder if it is missing. Throws io_error if the path names something else.
void make_folder(const std::string& path);

/// Why a process locks the folder of a checkpoint.
enum class folder_use : std::uint8_t { saves, reads, removes };

/// A lock of a folder. Released by the destructor, and by the system if the process ends. Without locks of
/// the file system everybody is let in.
///
///   saves    keeps other objects and processes from saving into the same folder; throws io_error if one does
///   reads    keeps the data files for a reader that can't have all of them open
///   removes  for who removes files: refused while somebody reads
class folder_lock {
 public:
  explicit folder_lock(const std::string& folder, folder_use use = folder_use::saves);
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;
  /// Closing alone would leave the lock to a child that was forked meanwhile.
  /// Such a child shares the lock, and must not open it.
  ~folder_lock();

  /// True if a reader needs the files.
  [[nodiscard]] bool is_refused() const { return refused_; }

 private:
  file file_;
  process_mark process_;
  bool refused_ = false;
};

/// The bytes of a manifest of a folder; none if it is not there. Throws io_error if nobody knows.
std::optional<std::string> find_manifest(const std::string& folder, const checkpoint_choice& choice = {});
/// As above. Throws not_found.
std::string manifest_bytes(const std::string& folder, const checkpoint_choice& choice);

/// A manifest of a folder. Throws not_found; `missing`, if given, is set instead if there is none.
manifest read_manifest(const std::string& folder, bool* missing = nullptr,
                       const checkpoint_choice& choice = {});

/// Numbers of the generations of a folder, in ascending order, and the names of its named checkpoints.
/// @{
std::vector<std::uint64_t> generations_in(const std::string& folder);
std::vector<std::string> checkpoint_names_in(const std::string& folder);
/// @}

/// Writes a file of the folder that appears as a whole, and that only those can read who can read the
/// manifest.
void write_whole(const std::string& path, const std::string& bytes, const std::string& folder);

/// Replaces the old manifest: after that the new checkpoint is the current one. The old
/// one stays under its number if more than one generation are kept; that of a name replaces the one of this
/// name alone.
void write_manifest(const std::string& folder, const manifest& content, const checkpoint_target& target = {});

/// After write_manifest: removes the oldest generations, those that are kept excepted. What can't be removed
/// is left for the next save.
void remove_generations(const std::string& folder, const manifest& current,
                        const checkpoint_target& target) noexcept;

/// Removes data files that no manifest names, digests that are not those of the newest generation, and
/// temporary files of saves that were killed. Files that can't be removed are left, without memory for one,
/// as are all while somebody reads an older checkpoint, and what a manifest that can't be read may name: the
/// next save looks again.
void remove_leftovers(const std::string& folder, const manifest& current) noexcept;

/// The number of the next save: above those of all files that any save has left.
std::uint64_t next_number(const std::string& folder, const manifest& current);

/// The first bytes of a data file.
std::vector<std::byte> data_header(std::uint64_t number);

/// The data files of a manifest. At most most_data_files are open at once, whatever their number: that of the
/// descriptors of a process is limited. Reads check checksums, and take no memory but what they are given.
/// Thread-safe: several threads may read.
class checkpoint_files {
 public:
  /// Looks at each file, and checks its size. Throws io_error; `gone`, where given, is set instead of an
  /// error if a file is missing.
  checkpoint_files(const std::string& folder, const manifest& content, bool* gone = nullptr);
  checkpoint_files(const checkpoint_files&) = delete;
  checkpoint_files& operator=(const checkpoint_files&) = delete;

  /// Reads the bytes of a chunk and applies its patches. `target` takes array.bytes_of_chunk(index) bytes;
  /// `scratch` is memory to reuse. `subject` names the array in messages.
  void read_chunk(const manifest_array& array, std::size_t index, std::byte* target,
                  std::vector<std::byte>& scratch, const std::string& subject) const;
  /// Reads all chunks of an array.
  void read_array(const manifest_array& array, void* target, const std::string& subject) const;
  /// Reads the bytes of a piece, as they are.
  void read_piece(const manifest_piece& piece, std::size_t bytes, std::byte* target,
                  const std::string& subject) const;

 private:
  struct data_file {
    explicit data_file(const std::string& path) : content("checkpoint", path) {}

    file content;
    int users = 0;  ///< reads under way
    std::uint64_t last_use = 0;
  };

  /// False with errno if it can't be opened. Takes no memory: an object may be half loaded.
  bool open(data_file& data) const noexcept;
  [[noreturn]] static void fail_to_open(const file& data);
  /// Closes the file that nobody has used for the longest time; false if all open ones are in use.
  bool close_oldest() const noexcept;

  mutable std::mutex guard_;
  std::optional<folder_lock> keeps_all_;
  mutable std::vector<data_file> files_;
  mutable std::size_t open_ = 0;
  mutable std::uint64_t uses_ = 0;
};

/// A data file without its name in a manifest yet, which takes pieces from several threads. Removed unless it
/// is kept.
class piece_file {
 public:
  /// The position of the file in the manifest, until it has one.
  static constexpr std::uint32_t fresh = 0xFFFFFFFFu;

  piece_file(const std::string& folder, std::uint64_t number);
  piece_file(const piece_file&) = delete;
  piece_file& operator=(const piece_file&) = delete;
  ~piece_file() { drop(); }

  /// Writes a piece, and computes its checksum.
  manifest_piece append(const std::byte* source, std::size_t bytes);
  /// Bytes of the file.
  [[nodiscard]] std::uint64_t size() const { return content_.size(); }
  /// Bytes of pieces.
  [[nodiscard]] std::uint64_t written() const { return end_.load() - data_header_bytes; }
  /// Brings what has been written to the disk.
  void sync() const { content_.sync(); }
  /// Brings all to the disk. No piece may follow.
  void finish() {
    content_.sync();
    content_.close();
  }
  void keep() { created_ = false; }
  /// Frees the disk space of a file that nobody will name. Its name stays: it may be another's by now.
  void abandon() noexcept;

 private:
  void drop();

  process_mark process_;
  std::string path_;
  file content_;
  bool created_ = false;
  std::atomic<std::uint64_t> end_{data_header_bytes};
};

/// True if the checkpoint of a target is that of save `number`, or nobody knows.
bool may_be_current(const std::string& folder, std::uint64_t number,
                    const checkpoint_target& target = {}) noexcept;

}  // namespace ferry::detail
