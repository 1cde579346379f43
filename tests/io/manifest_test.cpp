// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/optimizer_facts.hpp>
#include <ferry/memory/detail/file.hpp>

#include "fuzz/manifest_case.hpp"
#include "support/folder.hpp"
#include "support/forked.hpp"
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <malloc.h>
#include <sys/resource.h>

/// The strict reader of manifests.
namespace ferry_test::manifest_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace ferry::detail;

/// Two files, a table of three chunks with patches, a state, an empty array.
manifest example() {
  manifest saved;
  saved.number = 5;
  saved.files = {{2, 4096 + 5000}, {5, 4096 + 900}};
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
  saved.entries.push_back({"weights", "array", {}, {table}});
  saved.entries.push_back({"adam",
                           "state",
                           {{"rule", manifest_fact::text, "adam", {}},
                            {"option.lr", manifest_fact::real, {}, {fact_bits(1e-3)}},
                            {"option.betas", manifest_fact::real, {}, {fact_bits(0.9), fact_bits(0.999)}},
                            {"steps", manifest_fact::whole, {}, {3}}},
                           {none}});
  return saved;
}

/// The body of example() in the words of docs/checkpoints.md.
const std::string body_text =
    R"({"files":[{"number":2,"bytes":9096},{"number":5,"bytes":4996}],"entries":[)"
    R"({"name":"weights","kind":"array","facts":[],"arrays":[)"
    R"({"name":"","type":"f32","element_bytes":4,"extents":[100,10],"chunk_bytes":1600,"unit_bytes":40,)"
    R"("chunks":[[0,4096,1],[0,5696,2,[1,4096,3,2],[1,4224,4,1]],[0,7296,5]]}]},)"
    R"({"name":"adam","kind":"state","facts":[{"name":"rule","text":"adam"},)"
    R"({"name":"option.lr","f64":[0.001]},{"name":"option.betas","f64":[0.9,0.999]},)"
    R"({"name":"steps","i64":[3]}],"arrays":[)"
    R"({"name":"row_steps","type":"u32","element_bytes":4,"extents":[0],"chunk_bytes":4,"unit_bytes":4,)"
    R"("chunks":[]}]}]})";

/// That of the golden checkpoint.
std::string golden_manifest() {
  const auto golden_file = file::open_to_read("test", tests_folder() + "/io/golden/checkpoint_v2/manifest");
  std::string bytes(static_cast<std::size_t>(golden_file.size()), '\0');
  golden_file.read_at(bytes.data(), bytes.size(), 0);
  return bytes;
}

/// A manifest of version 2 with this body.
std::string with_body(const std::string& body) {
  std::string bytes = encode(example()).substr(0, manifest_header_bytes) + body + "0000";
  seal_manifest(bytes);
  return bytes;
}

/// The most memory that this process has had.
std::size_t peak_memory() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<std::size_t>(use.ru_maxrss) * 1024;
}

manifest read(const std::string& bytes) { return decode(bytes, "here/manifest"); }

TEST_CASE("a manifest is read as it was written", "[io][checkpoint]") {
  const auto before = example();
  const std::string bytes = encode(before);
  CHECK(read(bytes) == before);
  CHECK(encode(read(bytes)) == bytes);
  CHECK(read(encode(manifest{})) == manifest{});
  // The places that docs/checkpoints.md names.
  CHECK(bytes.substr(0, 8) == "ferryckp");
  CHECK(bytes.substr(8, 8) == std::string("\2\0\0\0\0\0\0\0", 8));
  CHECK(bytes.substr(16, 8) == std::string("\5\0\0\0\0\0\0\0", 8));
  std::uint64_t body = 0;
  std::memcpy(&body, bytes.data() + 24, 8);
  CHECK(body == bytes.size() - 36);
  CHECK(bytes.substr(32, body) == body_text);
}

TEST_CASE("manifests that lie are refused", "[io][checkpoint]") {
  const auto refuses = [](auto change, const std::string& sentence) {
    manifest lie = example();
    change(lie);
    CHECK_THROWS_MATCHES(read(encode(lie)), ferry::io_error,
                         MessageMatches(ContainsSubstring("here/manifest: ") && ContainsSubstring(sentence)));
  };
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[2].piece.offset = 9000; },
          "800 bytes at byte 9000 do not lie in data file 2");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[2].piece.offset = ~std::uint64_t{0}; },
          "do not lie in data file 2");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[0].piece.offset = 0; },
          "do not lie in data file 2");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[0].piece.file = 2; },
          "a piece lies in file 2 of its list");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks.pop_back(); }, "has 2 chunks instead of 3");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].extents[0] = 200; }, "chunks instead of");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].extents[0] = std::uint64_t{1} << 40; },
          "more than all data files");
  refuses(
      [](manifest& saved) {
        saved.entries[0].arrays[0].extents = {~std::uint64_t{0}, 1u << 31};
      },
      "too many bytes");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].extents.resize(9, 1); }, "rank 9");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].element_bytes = 0; }, "elements of 0 bytes");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunk_bytes = 0; }, "chunks of 0 bytes");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunk_bytes = std::uint64_t{40} << 40; },
          "has chunks of");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].unit_bytes = 6; }, "units of 6");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[1].patches[0].units = 41; },
          "has 41 units");
  refuses([](manifest& saved) { saved.entries[0].arrays[0].chunks[1].patches[0].units = 0; }, "has 0 units");
  refuses([](manifest& saved) { saved.entries[1].name = "weights"; },
          "two of its entries are named 'weights'");
  refuses([](manifest& saved) { saved.entries[1].facts[1].name = "rule"; },
          "two of its facts are named 'rule'");
  refuses([](manifest& saved) { saved.files[1].number = 2; }, "data file 2 is out of order");
  refuses([](manifest& saved) { saved.files[1].number = 6; }, "data file 6 is out of order");
  refuses([](manifest& saved) { saved.files[1].bytes = 5; }, "data file 5 can't have 5 bytes");

  CHECK_THROWS_AS(read(""), ferry::io_error);
  CHECK_THROWS_AS(read("ferryckp"), ferry::io_error);
}

TEST_CASE("a manifest keeps every number and name", "[io][checkpoint]") {
  manifest odd = example();
  auto& facts = odd.entries[1].facts;
  facts.clear();
  const auto add = [&](const char* name, manifest_fact::kind_of kind, std::vector<std::uint64_t> numbers) {
    facts.push_back({name, kind, {}, std::move(numbers)});
  };
  add("reals", manifest_fact::real,
      {fact_bits(0.0), fact_bits(-0.0), fact_bits(3.0), fact_bits(5e-324), fact_bits(1.7976931348623157e308),
       fact_bits(std::numeric_limits<double>::infinity()),
       fact_bits(-std::numeric_limits<double>::infinity()), 0x7ff8000000000000u, 0xfff8000000001234u,
       fact_bits(0.1f)});
  add("whole", manifest_fact::whole,
      {fact_bits(std::int64_t{-1}), fact_bits(INT64_MIN), fact_bits(INT64_MAX), 0});
  add("natural", manifest_fact::natural, {0, ~std::uint64_t{0}});
  add("none", manifest_fact::real, {});
  auto random = generator(602);
  std::vector<std::uint64_t> bits(5000);
  for (auto& number : bits) number = random();
  add("random", manifest_fact::real, bits);
  facts.push_back({"words", manifest_fact::text, "quote \" backslash \\ line\n \u00e4", {}});
  facts.push_back({std::string("no UTF-8 \xff\x00\xc3", 12), manifest_fact::text, "\xed\xa0\x80", {}});
  odd.entries[1].name = "\xff";
  CHECK(read(encode(odd)) == odd);
}

TEST_CASE("bodies that are not the format's are refused", "[io][checkpoint]") {
  CHECK(read(with_body(body_text)) == example());
  const auto refuses = [](const std::string& pattern, const std::string& replacement,
                          const std::string& sentence) {
    std::string body = body_text;
    const std::size_t place = body.find(pattern);
    REQUIRE(place != std::string::npos);
    body.replace(place, pattern.size(), replacement);
    CAPTURE(body);
    CHECK_THROWS_MATCHES(read(with_body(body)), ferry::io_error,
                         MessageMatches(ContainsSubstring("here/manifest: ") && ContainsSubstring(sentence)));
  };
  refuses("{\"files\"", "[\"files\"", "'{\"files\":' is missing at byte 0 of its body, before: [\"files\":[");
  refuses("{\"files\"", "{\"more\":1,\"files\"", "'{\"files\":' is missing at byte 0");
  refuses("\"number\":2", "\"number\":2,\"number\":2", "',\"bytes\":' is missing");
  refuses("\"number\":2", "\"number\":2.0", "',\"bytes\":' is missing");
  refuses("\"number\":2", "\"number\":-2", "an unsigned number of 64 bits is missing");
  refuses("\"number\":2", "\"number\":18446744073709551616", "an unsigned number of 64 bits is missing");
  refuses("\"files\":[", "\"files\":[7,", "'{\"number\":' is missing");
  refuses("\"facts\":[]", "\"facts\":{}", "'[' is missing");
  refuses("\"kind\":\"array\"", "\"kind\":3", "a text is missing");
  refuses("\"kind\":\"array\"", "\"kind\":[97]", "a text is missing");
  refuses("\"kind\":\"array\"", "\"kind\":[256]", "an unsigned number of 8 bits is missing");
  refuses("\"text\":\"adam\"", "\"f32\":[1.5]", "the value of a fact is missing");
  refuses("\"text\":\"adam\"", "\"text\":\"adam\",\"u64\":[]", "'}' is missing");
  refuses("[0.001]", "[1]", "a number with a fraction is missing");
  refuses("[0.001]", "[\"bits 1\"]", "a number with a fraction is missing");
  refuses("[0.001]", "[\"bits 09218868437227405312\"]", "an unsigned number of 64 bits is missing");
  refuses("\"i64\":[3]", "\"i64\":[9223372036854775808]", "a signed number of 64 bits is missing");
  refuses("\"i64\":[3]", "\"i64\":[3.5]", "']' is missing");
  refuses("\"element_bytes\":4", "\"element_bytes\":4294967296", "an unsigned number of 32 bits is missing");
  refuses("[0,4096,1]", "[0,4096]", "',' is missing");
  refuses("[0,4096,1]", "{\"file\":0}", "'[' is missing");
  refuses("[1,4096,3,2]", "[1,4096,3,2,0]", "']' is missing");
  refuses("[1,4096,3,2]", "7", "'[' is missing");
  refuses("\"extents\":[100", "\"extents\":" + std::string(100000, '['),
          "an unsigned number of 64 bits is missing");
  refuses("]}]}]}", "]}]}]}" + std::string("\0x", 2), "the end is missing");
  refuses("]}]}]}", "]}]}]} x", "the end is missing");
  refuses("]}]}]}", "]}]}]", "'}' is missing");
  refuses("\"number\":2", "\"number\":02", "an unsigned number of 64 bits is missing");
  refuses("\"number\":2", "\"number\":+2", "an unsigned number of 64 bits is missing");
  refuses("\"number\":2", "\"number\":", "an unsigned number of 64 bits is missing");
  refuses("\"number\":2,", "\"number\":2,,", "',\"bytes\":' is missing");
  refuses("\"number\":2,", "\"number\":2 ", "',\"bytes\":' is missing");
  refuses("\"number\"", "\"number", "'{\"number\":' is missing");
  refuses("\"i64\":[3]", "\"i64\":[-9223372036854775809]", "a signed number of 64 bits is missing");
  refuses("\"i64\":[3]", "\"i64\":[3,]", "a signed number of 64 bits is missing");
  for (const char* const number :
       {"1.", ".5", "01.5", "+1.5", "nan", "inf", "1e999", "0x1p3", "1.5.5", "--1.5"})
    refuses("[0.001]", "[" + std::string(number) + "]", "a number with a fraction is missing");
  for (const char* const text : {"\"a\nb\"", "\"\\x\"", "\"\\ud800\"", "\"\\", "null", "true"})
    refuses("\"adam\",\"kind\"", std::string(text) + ",\"kind\"", "a text is missing");
  refuses("\"adam\"", "\"\xc3\"", "of its body is not UTF-8");
  refuses("\"files\":[", "\"files\": [", "'[' is missing");
  refuses("\"number\":2,\"bytes\":9096", "\"bytes\":9096,\"number\":2", "'{\"number\":' is missing");
  // The format leaves these open: escapes, and the digits of numbers with a fraction.
  std::string body = body_text;
  const auto put = [&](const std::string& pattern, const std::string& replacement) {
    body.replace(body.find(pattern), pattern.size(), replacement);
  };
  put("\"weights\"", "\"w\\u0065i\\u0067hts\"");
  put("[0.001]", "[1e-3]");
  CHECK(read(with_body(body)) == example());
}

TEST_CASE("a manifest takes a small multiple of its bytes in memory, whatever it says",
          "[io][checkpoint][once]") {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  const auto filled = [](const std::string& before, const std::string& item, const std::string& after) {
    std::string body = before;
    body.reserve(bytes + 100);
    while (body.size() < bytes) body += item;
    return with_body(body + after);
  };
  const std::string fact = R"({"files":[],"entries":[{"name":"","kind":"","arrays":[],"facts":[)";
  const std::string array = R"({"files":[],"entries":[{"name":"","kind":"","facts":[],"arrays":[{)";
  const auto check = [&](const char* label, const std::string& manifest_bytes, std::size_t most = 7) {
    CAPTURE(label);
    ::malloc_trim(0);
    forked child([&](auto&) {
      const std::size_t before = peak_memory();
      bool refused = false;
      try {
        static_cast<void>(read(manifest_bytes));
      } catch (const ferry::io_error&) {
        refused = true;
      }
      const std::size_t more = peak_memory() - before;
      return refused && more < most * bytes;
    });
    CHECK(child.ended_well());
  };
  check("numbers", filled("[", "1,", "1]"));
  check("lists", filled("[", "[],", "[]]"));
  check("lists of files", filled(R"({"entries":[],"files":[)", "[],", "[]]}"));
  check("commas", filled(R"({"entries":[],"files":[)", ",", "]}"));
  check("open lists", filled(R"({"entries":[],"files":[)", "[", "]}"));
  check("files", filled(R"({"entries":[],"files":[)", R"({"number":1,"bytes":1},)", "{}]}"));
  check("entries",
        filled(R"({"files":[],"entries":[)", R"({"name":"","kind":"","facts":[],"arrays":[]},)", "{}]}"));
  check("numbers of a fact", filled(fact + R"({"name":"","u64":[)", "1,", "]}]}]}"));
  check("commas of a fact", filled(fact + R"({"name":"","u64":[)", ",", "]}]}]}"));
  check("reals of a fact", filled(fact + R"({"name":"","f64":[)", "1.5,", "]}]}]}"));
  check("facts", filled(fact, R"({"name":"","u64":[]},)", "]}]}"));
  check("facts with numbers", filled(fact, R"({"name":"","u64":[1]},)", "]}]}"));
  check("a text", filled(fact + R"({"name":"","text":")", "x", "\"}]}]"));
  check("a text with escapes", filled(fact + R"({"name":"","text":")", "\\n", "\"}]}]"));
  check("bytes of a text", filled(fact + R"({"name":"","text":[)", "1,", "]}]}]"));
  check("a name of a member", filled("{\"", "x", "\":1}"));
  check("extents", filled(array + R"("extents":[)", "1,", "]}]}]}"));
  check("chunks", filled(array + R"("chunks":[)", "[0,0,0],", "]}]}]}"));
  check("patches", filled(array + R"("chunks":[[0,0,0)", ",[0,0,0,1]", "]]}]}]}"));
  check("chunks with patches", filled(array + R"("chunks":[)", "[0,0,0,[0,0,0,1]],", "]}]}]}"));
  check(
      "arrays",
      filled(
          R"({"files":[],"entries":[{"name":"","kind":"","facts":[],"arrays":[)",
          R"({"name":"","type":"","element_bytes":1,"extents":[],"chunk_bytes":1,"unit_bytes":1,"chunks":[]},)",
          "]}]}"));
}

}  // namespace ferry_test::manifest_test
