// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace fuzz {

/// A sanitizer reports the place.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// A file in memory only.
class memory_file {
 public:
  memory_file(const std::uint8_t* data, std::size_t size) : content_("fuzz", "input") {
    const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
    require(descriptor >= 0);
    require(content_.open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDWR));
    ::close(descriptor);
    content_.write_at(data, size, 0);
  }
  [[nodiscard]] const ferry::detail::file& content() const { return content_; }

 private:
  ferry::detail::file content_;
};

}  // namespace fuzz
