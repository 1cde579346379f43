// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/owned.hpp>

#include <cstdio>

namespace ferry::detail {

struct close_stream {
  void operator()(std::FILE* stream) const noexcept { std::fclose(stream); }
};

/// The owner of what fopen returns.
using file_stream = owned<std::FILE, close_stream>;

}  // namespace ferry::detail
