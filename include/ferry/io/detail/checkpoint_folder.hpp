// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_choice.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The folder of a checkpoint: "manifest", that of the newest generation; "manifest-<number>" of older ones;
/// "named-<name>" of named checkpoints; data files "data-<number>", which several manifests may name;
/// "digests-<number>" of the newest generation; "lock".
namespace ferry::detail {

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

/// Keeps other objects and processes from saving into the same folder. Released by the destructor, and by the
/// system if the process ends.
class folder_lock {
 public:
  explicit folder_lock(const std::string& folder);
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;
  /// Closing alone would leave the lock to a child that was forked meanwhile.
  /// Such a child shares the lock, and must not open it.
  ~folder_lock();

 private:
  file file_;
  process_mark process_;
};

/// Why a process opens the folder of a checkpoint.
enum class folder_use : std::uint8_t { reads, removes };

/// Keeps the data files of a folder for readers that can't have all of them open: these share a lock of the
/// folder itself, and who removes files needs it alone, and does not wait for it. Without such locks of the
/// file system everybody is let in.
class folder_guard {
 public:
  folder_guard(const std::string& folder, folder_use how);
  folder_guard(const folder_guard&) = delete;
  folder_guard& operator=(const folder_guard&) = delete;
  /// See ~folder_lock.
  ~folder_guard();

  /// True if a reader needs the files.
  [[nodiscard]] bool is_refused() const { return refused_; }

 private:
  file folder_;
  bool refused_ = false;
};

/// The bytes of a manifest of a folder. Throws not_found; `missing`, if given, is set instead if there is
/// none.
std::string manifest_bytes(const std::string& folder, bool* missing = nullptr,
                           const checkpoint_choice& choice = {});

/// A manifest of a folder; see manifest_bytes.
manifest read_manifest(const std::string& folder, bool* missing = nullptr,
                       const checkpoint_choice& choice = {});

/// True if a folder has the checkpoint. Throws io_error if nobody can tell.
bool has_checkpoint(const std::string& folder, const checkpoint_choice& choice);
/// Numbers of the generations of a folder, in ascending order, and the names of its named checkpoints.
/// @{
std::vector<std::uint64_t> generations_in(const std::string& folder);
std::vector<std::string> checkpoint_names_in(const std::string& folder);
/// @}

/// Writes a file of the folder that appears as a whole, and that only those can read who can read the
/// manifest.
void write_whole(const std::string& path, const std::string& bytes, const std::string& folder);

/// Puts a manifest in the place of the old one: after that the new checkpoint is the current one. The old
/// one stays under its number if more than one generation are kept; that of a name replaces the one of this
/// name alone.
void write_manifest(const std::string& folder, const manifest& content, const checkpoint_place& place = {});

/// After write_manifest: removes the oldest generations, those that are kept excepted. What can't be removed
/// is left for the next save.
void remove_generations(const std::string& folder, const manifest& current,
                        const checkpoint_place& place) noexcept;

/// Removes data files that no manifest names, digests that are not those of the newest generation, and
/// temporary files of saves that were killed. Files that can't be removed are left, without memory for one,
/// as are all while somebody reads an older checkpoint, and what a manifest that can't be read may name: the
/// next save looks again.
void remove_leftovers(const std::string& folder, const manifest& current) noexcept;

/// The number of the next save: above those of all files that any save has left.
std::uint64_t next_number(const std::string& folder, const manifest& current);

/// The first bytes of a data file.
std::vector<std::byte> data_header(std::uint64_t number);

/// A data file without its name in the manifest yet; removed unless it is kept.
class new_data_file {
 public:
  new_data_file(const std::string& folder, std::uint64_t number);
  new_data_file(const new_data_file&) = delete;
  new_data_file& operator=(const new_data_file&) = delete;
  ~new_data_file();

  [[nodiscard]] const file& content() const { return content_; }
  /// Brings the content to the disk.
  void finish();
  void keep() { created_ = false; }

 private:
  void drop();

  process_mark process_;
  std::string path_;
  file content_;
  bool created_ = false;
};

}  // namespace ferry::detail
