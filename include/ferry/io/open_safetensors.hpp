// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/safetensors_file.hpp>

#include <string>

namespace ferry::io {

/// Opens a safetensors file and checks its header:
///
///   auto m = ferry::io::open_safetensors("m.safetensors");
///   auto w = m.load<float, ferry::device_space>("w");
///   auto part = m.load<float>("w", 100, 200);   // rows 100 to 199 only
///
/// Throws io_error for a file that can't be read, and for one that the reference implementation refuses: a
/// header above 100 MB, no UTF-8, offsets with holes or overlaps, sizes that are not those of shapes, bytes
/// that are missing or left over. It also refuses names that come twice and keys that the format does not
/// have.
[[nodiscard]] safetensors_file open_safetensors(const std::string& path);

}  // namespace ferry::io
