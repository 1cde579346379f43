// SPDX-License-Identifier: Apache-2.0
#include "../../backends/cuda/detail/page_locking.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

/// Which memory is page-locked in which way, on devices that nobody here has.
namespace ferry_test::page_locking_test {

using ferry::cuda::host_memory_facts;
using ferry::cuda::page_locking;
using ferry::cuda::page_locking_for;
using ferry::cuda::why_not_registered;

TEST_CASE("pages are registered only where the device has them at the host's address", "[page_locking]") {
  for (int bits = 0; bits < 16; ++bits) {
    const bool maps = (bits & 1) != 0, unified = (bits & 2) != 0, registers = (bits & 4) != 0,
               same = (bits & 8) != 0;
    CAPTURE(maps, unified, registers, same);
    const host_memory_facts facts{maps, unified, registers, same};
    auto expected = page_locking::impossible;
    if (maps && unified) expected = page_locking::allocated;
    if (maps && registers && same) expected = page_locking::registered;
    CHECK(page_locking_for(facts) == expected);
    CHECK((why_not_registered(facts) == nullptr) == (expected == page_locking::registered));
  }
}

TEST_CASE("why memory can't be locked names what the device lacks", "[page_locking]") {
  const auto why = [](bool maps, bool registers, bool same) {
    return std::string(why_not_registered({maps, true, registers, same}));
  };
  CHECK(why(false, true, true).find("cudaDevAttrCanMapHostMemory") != std::string::npos);
  CHECK(why(true, false, true).find("cudaDevAttrHostRegisterSupported") != std::string::npos);
  CHECK(why(true, true, false).find("cudaDevAttrCanUseHostPointerForRegisteredMem") != std::string::npos);
}

}  // namespace ferry_test::page_locking_test
