// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ferry::detail {

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

  /// Reads the bytes of a chunk and applies its patches. `target` takes array.bytes_of_chunk(place) bytes;
  /// `scratch` is memory to reuse. `subject` names the array in messages.
  void read_chunk(const manifest_array& array, std::size_t place, std::byte* target,
                  std::vector<std::byte>& scratch, const std::string& subject) const;
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
  /// Keeps a file open.
  class user {
   public:
    user(const checkpoint_files& home, std::size_t place);
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    ~user();

   private:
    const checkpoint_files& home_;
    data_file& data_;
  };

  /// False with errno if it can't be opened. Takes no memory: an object may be half loaded.
  bool open(data_file& data) const noexcept;
  [[noreturn]] static void fail_to_open(const file& data);
  /// Closes the file that nobody has used for the longest time; false if all open ones are in use.
  bool close_oldest() const noexcept;

  mutable std::mutex guard_;
  std::optional<folder_guard> keeps_all_;
  mutable std::vector<data_file> files_;
  mutable std::size_t open_ = 0;
  mutable std::uint64_t uses_ = 0;
};

}  // namespace ferry::detail
