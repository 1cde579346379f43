// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/rule_options.hpp>

#include "fuzz/manifest_case.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// The strict reader of manifests.
namespace ferry_test::manifest_test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace ferry::detail;

/// Two files, a table of three chunks with patches, a state, an empty array.
manifest example() {
  manifest made;
  made.number = 5;
  made.files = {{2, 4096 + 5000}, {5, 4096 + 900}};
  manifest_array table;
  table.dtype = "f32";
  table.element_bytes = 4;
  table.extents = {100, 10};
  table.unit_bytes = 40;
  table.chunk_bytes = 1600;
  table.chunks = {
      {{0, 4096, 1}, {}}, {{0, 5696, 2}, {{{1, 4096, 3}, 2}, {{1, 4224, 4}, 1}}}, {{0, 7296, 5}, {}}};
  manifest_array none;
  none.name = "row_steps";
  none.dtype = "u32";
  none.element_bytes = 4;
  none.extents = {0};
  none.unit_bytes = 4;
  none.chunk_bytes = 4;
  made.entries.push_back({"weights", "array", {}, {table}});
  made.entries.push_back({"adam",
                          "state",
                          {{"rule", manifest_fact::text, "adam", {}},
                           {"option.lr", manifest_fact::real, {}, {fact_bits(1e-3)}},
                           {"option.betas", manifest_fact::real, {}, {fact_bits(0.9), fact_bits(0.999)}},
                           {"steps", manifest_fact::whole, {}, {3}}},
                          {none}});
  return made;
}

manifest read(const std::string& bytes) { return manifest_reader(bytes, "here/manifest").read(); }

}  // namespace

TEST_CASE("a manifest is read as it was written", "[io][checkpoint]") {
  const auto before = example();
  const std::string bytes = encode(before);
  CHECK(read(bytes) == before);
  CHECK(encode(read(bytes)) == bytes);
  CHECK(read(encode(manifest{})) == manifest{});
  // The places that docs/checkpoints.md names.
  CHECK(bytes.substr(0, 8) == "ferryckp");
  CHECK(bytes.substr(8, 8) == std::string("\1\0\0\0\0\0\0\0", 8));
  CHECK(bytes.substr(16, 8) == std::string("\5\0\0\0\0\0\0\0", 8));
  std::uint64_t body = 0;
  std::memcpy(&body, bytes.data() + 24, 8);
  CHECK(body == bytes.size() - 36);
  CHECK(bytes.substr(32, 4) == std::string("\2\0\0\0", 4));
}

TEST_CASE("manifests that lie are refused", "[io][checkpoint]") {
  const auto refuses = [](auto change, const std::string& sentence) {
    manifest lie = example();
    change(lie);
    CHECK_THROWS_MATCHES(read(encode(lie)), ferry::io_error,
                         MessageMatches(ContainsSubstring("here/manifest: ") && ContainsSubstring(sentence)));
  };
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[2].piece.offset = 9000; },
          "800 bytes at byte 9000 do not lie in data file 2");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[2].piece.offset = ~std::uint64_t{0}; },
          "do not lie in data file 2");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[0].piece.offset = 0; },
          "do not lie in data file 2");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[0].piece.file = 2; },
          "a piece lies in file 2 of its list");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks.pop_back(); }, "has 2 chunks instead of 3");
  refuses([](manifest& of) { of.entries[0].arrays[0].extents[0] = 200; }, "chunks instead of");
  refuses([](manifest& of) { of.entries[0].arrays[0].extents[0] = std::uint64_t{1} << 40; },
          "more than all data files");
  refuses(
      [](manifest& of) {
        of.entries[0].arrays[0].extents = {~std::uint64_t{0}, 1u << 31};
      },
      "too many bytes");
  refuses([](manifest& of) { of.entries[0].arrays[0].extents.resize(9, 1); }, "rank 9");
  refuses([](manifest& of) { of.entries[0].arrays[0].element_bytes = 0; }, "elements of 0 bytes");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunk_bytes = 0; }, "chunks of 0 bytes");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunk_bytes = std::uint64_t{40} << 40; },
          "has chunks of");
  refuses([](manifest& of) { of.entries[0].arrays[0].unit_bytes = 6; }, "units of 6");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[1].patches[0].units = 41; }, "has 41 units");
  refuses([](manifest& of) { of.entries[0].arrays[0].chunks[1].patches[0].units = 0; }, "has 0 units");
  refuses([](manifest& of) { of.entries[1].name = "weights"; }, "two of its entries are named 'weights'");
  refuses([](manifest& of) { of.entries[1].facts[1].name = "rule"; }, "two of its facts are named 'rule'");
  refuses([](manifest& of) { of.entries[1].facts[1].kind = static_cast<manifest_fact::kind_of>(9); },
          "unknown kind 9");
  refuses([](manifest& of) { of.files[1].number = 2; }, "data file 2 is out of order");
  refuses([](manifest& of) { of.files[1].number = 6; }, "data file 6 is out of order");
  refuses([](manifest& of) { of.files[1].bytes = 5; }, "data file 5 can't have 5 bytes");

  // A number of items for which memory is not taken.
  std::string bytes = encode(example());
  std::memcpy(bytes.data() + 32, "\xff\xff\xff\xff", 4);
  seal_manifest(bytes);
  CHECK_THROWS_MATCHES(
      read(bytes), ferry::io_error,
      MessageMatches(ContainsSubstring("it names 4294967295 data files, for which its rest of")));
  CHECK_THROWS_AS(read(""), ferry::io_error);
  CHECK_THROWS_AS(read("ferryckp"), ferry::io_error);
}

TEST_CASE("no random change of a manifest leads astray", "[io][checkpoint]") {
  auto random = generator(601);
  const std::string good = encode(example());
  std::size_t accepted = 0;
  for (int turn = 0; turn < 60000; ++turn) {
    std::string bytes = good;
    for (auto changes = 1 + random() % 3; changes != 0; --changes) {
      const std::size_t at = 8 + random() % (bytes.size() - 8);
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1u << random() % 8));
          break;
        case 2:
          bytes.erase(at, random() % 12);
          break;
        case 3:
          bytes.insert(at, random() % 12, static_cast<char>(random()));
          break;
        default: {  // a large or small number
          const std::uint64_t number = random() % 2 == 0 ? ~(random() % 3) : random() % 3;
          std::memcpy(bytes.data() + at, &number,
                      std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, bytes.size() - at));
        }
      }
      if (bytes.size() < 48) break;
    }
    if (turn % 8 != 0) seal_manifest(bytes);
    bool good_one = false;
    const std::string fault = fault_of_manifest(bytes, good_one);
    if (!fault.empty()) FAIL(fault);
    accepted += good_one ? 1 : 0;
  }
  CHECK(accepted > 100);  // changes of checksums, texts and numbers that nothing contradicts
}

}  // namespace ferry_test::manifest_test
