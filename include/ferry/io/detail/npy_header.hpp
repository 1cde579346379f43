// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>

#include <cstdint>

/// The header of a .npy file: 6 bytes of magic, 2 of version, 2 (version 1) or 4 bytes of length, then a
/// Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, padded to 64 bytes.
namespace ferry::detail {

/// Reserves room for a row-major array and writes its header. Returns the header's size.
std::uint64_t begin_npy(const file& target, const dtype& type, const untyped_array& array);

/// Reads and checks the header of a file: the file's size must be what the header says. Throws io_error.
stored_array read_npy_header(const file& source);

}  // namespace ferry::detail
