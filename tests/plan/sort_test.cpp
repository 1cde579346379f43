// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// The backend's sort as plans use it: through execution_backend, on arrays that kernels reach.
namespace ferry_test::sort_test {

using backend = ferry::execution_backend<exec_space>;

void check_sort(const std::vector<std::uint64_t>& keys, int first_bit, int bits) {
  CAPTURE(keys.size(), first_bit, bits);
  const auto n = static_cast<std::int64_t>(keys.size());
  std::vector<std::int64_t> positions(keys.size());
  std::iota(positions.begin(), positions.end(), 0);

  ferry::tensor<std::uint64_t, ferry::device_space> key_memory("keys", 2 * keys.size());
  ferry::tensor<std::int64_t, ferry::device_space> value_memory("values", 2 * keys.size());
  std::vector<std::uint64_t> both_keys(2 * keys.size(), ~std::uint64_t{0});
  std::copy(keys.begin(), keys.end(), both_keys.begin());
  std::vector<std::int64_t> both_values(2 * keys.size(), -1);
  std::copy(positions.begin(), positions.end(), both_values.begin());
  put(key_memory, both_keys);
  put(value_memory, both_values);

  const exec_space exec;
  const std::size_t bytes = backend::sort_bytes(n, first_bit, bits);
  // A guard after the workspace: a sort that needs more than it says is found here.
  const std::size_t guard = 256;
  ferry::tensor<unsigned char, ferry::device_space> workspace("workspace", bytes + guard);
  put(workspace, std::vector<unsigned char>(bytes + guard, 0xA5));
  std::uint64_t* sorted_keys = key_memory.data();
  std::int64_t* sorted_values = value_memory.data();
  backend::sort_pairs(exec, sorted_keys, key_memory.data() + n, sorted_values, value_memory.data() + n, n,
                      first_bit, bits, workspace.data(), bytes);
  exec.fence();

  const int width = bits - first_bit;
  const std::uint64_t mask = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  const auto digit = [&](std::int64_t p) { return keys[static_cast<std::size_t>(p)] >> first_bit & mask; };
  std::stable_sort(positions.begin(), positions.end(),
                   [&](std::int64_t a, std::int64_t b) { return digit(a) < digit(b); });
  std::vector<std::uint64_t> expected;
  for (const auto p : positions) expected.push_back(keys[static_cast<std::size_t>(p)]);

  REQUIRE((sorted_keys == key_memory.data() || sorted_keys == key_memory.data() + n));
  REQUIRE((sorted_values == value_memory.data() || sorted_values == value_memory.data() + n));
  const auto keys_now = take(key_memory);
  const auto values_now = take(value_memory);
  const auto key_at = keys_now.begin() + (sorted_keys - key_memory.data());
  const auto value_at = values_now.begin() + (sorted_values - value_memory.data());
  CHECK(std::vector<std::uint64_t>(key_at, key_at + n) == expected);
  CHECK(std::vector<std::int64_t>(value_at, value_at + n) == positions);
  const auto room = take(workspace);
  CHECK(std::all_of(room.begin() + static_cast<std::ptrdiff_t>(bytes), room.end(),
                    [](unsigned char byte) { return byte == 0xA5; }));
}

TEST_CASE("the backend's sort by some of the keys' bits is stable", "[sort]") {
  auto random = generator(51);
  struct {
    int first, end;
  } const ranges[] = {{0, 1}, {0, 11}, {0, 12}, {0, 64}, {5, 6}, {13, 20}, {13, 37}, {21, 22}, {40, 64}};
  for (const auto& range : ranges)
    for (const std::size_t n :
         {1u, 2u, 5u, 32u, 33u, 100u, 257u, 2047u, 2048u, 2049u, 4095u, 4096u, 4097u, 65535u, 65537u}) {
      std::vector<std::uint64_t> keys(n);
      for (auto& key : keys) key = random();
      check_sort(keys, range.first, range.end);
    }
}

TEST_CASE("the backend's sort leaves equal digits in their order", "[sort]") {
  auto random = generator(52);
  std::vector<std::uint64_t> keys(10000);
  // All bits that count are equal; those outside of the range are not, and must have no say.
  for (auto& key : keys) key = (random() & ~std::uint64_t{0x3F00}) | 0x1200;
  check_sort(keys, 8, 14);
  for (auto& key : keys) key = random() % 7 << 20 | (random() & 0xFFFFF);
  check_sort(keys, 20, 23);
}

}  // namespace ferry_test::sort_test
