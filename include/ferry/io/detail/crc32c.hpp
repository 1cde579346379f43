#pragma once

#include <boost/crc.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// CRC-32C (Castagnoli polynomial, reflected, initial and final value of all ones), as in iSCSI and ext4. The
/// checksum of "123456789" is 0xe3069283.
inline std::uint32_t crc32c(const void* data, std::size_t bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> sum;
  sum.process_bytes(data, bytes);
  return static_cast<std::uint32_t>(sum.checksum());
}

}  // namespace ferry::detail
