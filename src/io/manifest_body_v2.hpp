// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>

#include <string>
#include <string_view>

namespace ferry::detail {

/// Reads the body of a manifest of format version 2, JSON. Throws io_error for other members and types than
/// the format's; sizes and places are checked by its caller. `path` is for messages.
void read_manifest_body_v2(std::string_view text, const std::string& path, manifest& content);

}  // namespace ferry::detail
