// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tables.hpp"

#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ferry_bench {

/// A folder on the disk to be measured, $FERRY_BENCH_FOLDER or that of temporary files.
class scratch_folder {
 public:
  scratch_folder() {
    for (const char* name : {"FERRY_BENCH_FOLDER", "TMPDIR"})
      if (path_.empty() && std::getenv(name) != nullptr) path_ = std::getenv(name);
    if (path_.empty()) path_ = "/tmp";
    path_ += "/ferry_bench_XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    for (const auto& name : ferry::detail::names_in(path_ + "/run"))
      ::unlink((path_ + "/run/" + name).c_str());
    ::rmdir((path_ + "/run").c_str());
    ::unlink((path_ + "/plain").c_str());
    ::rmdir(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t room() const {
    struct statvfs space {};
    return ::statvfs(path_.c_str(), &space) == 0 ? space.f_bavail * space.f_frsize : 0;
  }

 private:
  std::string path_;
};

/// pwrite by `threads` threads, then fsync: what the disk takes at most.
inline double seconds_to_write(const std::string& path, const char* data, std::size_t bytes, int threads) {
  ::unlink(path.c_str());
  const auto begin = std::chrono::steady_clock::now();
  ferry::detail::file target("bench", path);
  if (!target.open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666))
    throw std::runtime_error("no file " + path);
  constexpr std::size_t piece = std::size_t{1} << 22;
  const auto pieces = static_cast<std::int64_t>((bytes + piece - 1) / piece);
  ferry::detail::parallel(
      pieces, 1, ferry::detail::threads_for_chunks(threads), [&](ferry::detail::front_queue& turns, int) {
        for (std::size_t i = 0; turns.take(i);)
          target.write_at(data + i * piece, std::min(piece, bytes - i * piece), i * piece);
      });
  target.sync();
  return seconds_since(begin);
}

}  // namespace ferry_bench
