// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/runtime/detail/launch.hpp>

/// The device's kernel for rows of any width, run on a host.
namespace ferry_test::chunks_test {

using ferry::kernels::readable_memory;

/// Bytes at an address that is `shift` more than a multiple of 16. The allocation ends with the last of them.
struct shifted_bytes {
  std::unique_ptr<std::byte[]> memory;
  std::byte* data;
  std::size_t size;

  shifted_bytes(std::size_t count, std::size_t shift) : size(count) {
    std::size_t offset = 0;
    for (std::size_t room = count + shift;; ++room) {  // its start is not known beforehand
      memory = std::make_unique<std::byte[]>(room);
      const auto begin = reinterpret_cast<std::uintptr_t>(memory.get());
      offset = (16 + shift - begin % 16) % 16;
      if (offset + count <= room) break;
    }
    data = memory.get() + offset;
  }
  [[nodiscard]] readable_memory limits() const {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    return {begin, begin + size};
  }
};

template <int Grain>
void check_gather(std::mt19937_64& random) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const std::int64_t width = (1 + below(300)) * Grain;
  const std::int64_t table_stride = width + below(3) * Grain, out_stride = width + below(9) * Grain;
  const std::int64_t rows = 1 + below(9), items = 1 + below(below(4) == 0 ? 150 : 12);
  const auto extent = [&](std::int64_t count, std::int64_t stride) {
    return static_cast<std::size_t>((count - 1) * stride + width);
  };
  shifted_bytes table(extent(rows, table_stride), static_cast<std::size_t>(below(16 / Grain) * Grain));
  shifted_bytes out(extent(items, out_stride), static_cast<std::size_t>(below(16 / Grain) * Grain));
  for (std::size_t b = 0; b < table.size; ++b) table.data[b] = static_cast<std::byte>(random());
  std::memset(out.data, 0x5a, out.size);
  std::vector<std::int64_t> listed(static_cast<std::size_t>(items));
  for (auto& row : listed) row = below(rows + 1) - 1;

  std::vector<std::byte> expected(out.data, out.data + out.size);
  for (std::int64_t item = 0; item < items; ++item)
    if (const std::int64_t row = listed[static_cast<std::size_t>(item)]; row >= 0)
      std::memcpy(expected.data() + item * out_stride, table.data + row * table_stride,
                  static_cast<std::size_t>(width));

  using kernel = ferry::kernels::gather_row_chunks<Grain, ferry::kernels::listed_rows>;
  const std::int64_t chunks =
      ferry::kernels::chunks_of_rows(reinterpret_cast<std::uintptr_t>(out.data), out_stride, width, Grain);
  const kernel move{table.data,      table_stride, out.data,
                    out_stride,      width,        ferry::detail::fast_divisor(chunks),
                    {listed.data()}, items,        table.limits()};
  for (std::int64_t i = kernel::groups(items) * chunks; i-- > 0;) move(i);
  INFO("grain " << Grain << ", width " << width << ", strides " << table_stride << " and " << out_stride);
  REQUIRE(std::memcmp(out.data, expected.data(), out.size) == 0);
  if constexpr (Grain == 4)
    for (const bool by_table : {false, true}) {
      std::memset(out.data, 0x5a, out.size);
      using by_lines = ferry::kernels::gather_row_lines<ferry::kernels::listed_rows>;
      const by_lines move_lines{table.data, table_stride,    out.data, out_stride,
                                width,      {listed.data()}, by_table};
      for (std::int64_t i = items * by_lines::lanes; i-- > 0;) move_lines(i);
      REQUIRE(std::memcmp(out.data, expected.data(), out.size) == 0);
    }
}

TEST_CASE("chunks and lines move rows of any width at any address and no byte beside them", "[rows]") {
  std::mt19937_64 random(20261126);
  for (int round = 0; round < 500; ++round) {
    check_gather<1>(random);
    check_gather<2>(random);
    check_gather<4>(random);
  }
}

TEST_CASE("fast_divisor divides as the operator", "[rows]") {
  std::mt19937_64 random(7);
  const auto any_bits = [&] { return static_cast<std::int64_t>(random() >> (1 + random() % 63)); };
  for (int round = 0; round < 20000; ++round) {
    const std::int64_t divisor = 1 + any_bits();
    const ferry::detail::fast_divisor fast(divisor);
    REQUIRE(fast.divisor() == divisor);
    for (const std::int64_t i :
         {any_bits(), any_bits() / divisor * divisor, any_bits() / divisor * divisor - 1,
          (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, std::int64_t{1} << 32,
          (std::int64_t{1} << 31) / divisor * divisor - 1})
      if (i >= 0) REQUIRE(fast.quotient(i) == i / divisor);
  }
}

}  // namespace ferry_test::chunks_test
