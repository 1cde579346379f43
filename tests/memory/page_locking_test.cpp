// SPDX-License-Identifier: Apache-2.0
#include "../../backends/cuda/detail/page_locking.hpp"
#include "support/test.hpp"

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

TEST_CASE("pages are locked in pieces, all or none", "[page_locking]") {
  using piece = std::pair<std::uintptr_t, std::size_t>;
  const std::size_t most = ferry::cuda::piece_bytes, first_byte = 3 * most + 4096, size = 9 * most + most / 2;
  // Addresses that nobody reads.
  const auto pointer = [](std::size_t address) { return reinterpret_cast<void*>(address); };
  const auto number = [](void* data) { return reinterpret_cast<std::uintptr_t>(data); };
  std::vector<piece> locked;
  std::size_t fails_from = ~std::size_t{0};
  const auto lock = [&](void* data, std::size_t bytes) {
    if (locked.size() >= fails_from) return 7;
    locked.emplace_back(number(data), bytes);
    return 0;
  };
  const auto unlock = [&](void* data) {
    REQUIRE_FALSE(locked.empty());
    std::size_t i = 0;
    while (i < locked.size() && locked[i].first != number(data)) ++i;
    REQUIRE(i < locked.size());
    locked.erase(locked.begin() + static_cast<std::ptrdiff_t>(i));
  };
  CHECK(ferry::cuda::lock_pieces(pointer(first_byte), size, lock, unlock) == 0);
  REQUIRE(locked.size() == 10);
  std::uintptr_t end = first_byte;
  for (const auto& [begin, bytes] : locked) {
    CHECK(begin == end);
    CHECK(bytes <= most);
    CHECK((begin + bytes - 1) / most == begin / most);
    CHECK_FALSE(ferry::cuda::spans_pieces(pointer(begin), bytes));
    end += bytes;
  }
  CHECK(end == first_byte + size);
  CHECK(ferry::cuda::spans_pieces(pointer(first_byte), most));
  ferry::cuda::unlock_pieces(pointer(first_byte), size, unlock);
  CHECK(locked.empty());
  for (fails_from = 0; fails_from < 10; ++fails_from) {
    CHECK(ferry::cuda::lock_pieces(pointer(first_byte), size, lock, unlock) == 7);
    CHECK(locked.empty());
  }
  CHECK(ferry::cuda::lock_pieces(pointer(most), 0, lock, unlock) == 0);
  // Less than eight pieces of memory is one registration, which copies of the user may span.
  for (const std::size_t bytes : {std::size_t{4096}, most, 8 * most - 1}) {
    CHECK(ferry::cuda::lock_pieces(pointer(first_byte), bytes, lock, unlock) == 0);
    CHECK(locked == std::vector<piece>{{first_byte, bytes}});
    ferry::cuda::unlock_pieces(pointer(first_byte), bytes, unlock);
    CHECK(locked.empty());
  }
}

}  // namespace ferry_test::page_locking_test
