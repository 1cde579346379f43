// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>

namespace ferry::detail {

struct close_stream {
  void operator()(std::FILE* stream) const noexcept { std::fclose(stream); }
};

/// The owner of what fopen returns.
using file_stream = std::unique_ptr<std::FILE, close_stream>;

}  // namespace ferry::detail
