// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// Reads a manifest strictly: whatever the bytes are, it throws io_error or returns a manifest whose pieces
/// lie within the named sizes of the data files. It never takes more memory than a small multiple of the
/// bytes that it was given.
class manifest_reader {
 public:
  /// `path` is for messages.
  manifest_reader(std::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  [[nodiscard]] manifest read() const;

  /// True for the bytes of a manifest, also of a damaged or a newer one.
  [[nodiscard]] bool is_manifest() const;
  /// The last data file that a manifest which read() refuses may need.
  [[nodiscard]] std::uint64_t last_data_file() const;

 private:
  void read_body(manifest& content) const;

  std::string_view bytes_;
  std::string path_;
};

}  // namespace ferry::detail
