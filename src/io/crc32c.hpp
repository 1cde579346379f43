// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// CRC-32C (Castagnoli polynomial, reflected, initial and final value of all ones), as in iSCSI and ext4. The
/// checksum of "123456789" is 0xe3069283. `before` is the checksum of bytes that come before these.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace ferry::detail
