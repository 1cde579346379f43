// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/open_safetensors.hpp>

#include <ferry/io/safetensors_file.hpp>

#include <string>

namespace ferry::io {

safetensors_file open_safetensors(const std::string& path) { return safetensors_file(path); }

}  // namespace ferry::io
