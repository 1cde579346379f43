// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

namespace ferry_test::safetensors_test {

template <class T>
std::vector<T> golden_values(std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = golden_value<T>(i);
  return result;
}

TEST_CASE("one tensor of an unknown type leaves the others of a file readable", "[io][safetensors]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/newer.safetensors";
  const std::vector<float> expected{1.5F, -2.0F};
  const auto file_of = [&](const std::string& type) {
    std::string json = R"({"__metadata__":null,"weights":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)";
    json += R"("scales":{"dtype":")" + type + R"(","shape":[3],"data_offsets":[8,11]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(json.size());
    bytes += json;
    bytes.append(reinterpret_cast<const char*>(expected.data()), 8);
    write_bytes(path, bytes + "\x01\x02\x03");
    return ferry::io::open_safetensors(path);
  };
  struct code {
    std::uint8_t bits;
  };
  for (const char* type : {"F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}) {
    const auto file = file_of(type);
    CHECK(take(file.load<float>("weights")) == expected);
    const auto codes = take(file.load<code>("scales"));
    CHECK((codes.size() == 3 && codes[0].bits == 1 && codes[2].bits == 3));
    CHECK(file.dtype("scales") == type);
  }
  for (const std::string type : {"F9_E4M4", "", "f32", "MX\\u0041"}) {
    const auto file = file_of(type);
    const std::string name = type == "MX\\u0041" ? "MXA" : type;
    CHECK(file.metadata().empty());
    CHECK(take(file.load<float>("weights")) == expected);
    CHECK(file.names() == std::vector<std::string>{"weights", "scales"});
    CHECK(file.shape("scales") == std::vector<std::size_t>{3});
    CHECK(file.dtype("scales") == name);
    std::vector<std::uint8_t> loaded(3, 7);
    const auto is_refused = [&](const auto& call) {
      try {
        call();
      } catch (const ferry::invalid_argument& refused) {
        return std::string(refused.what()) == "ferry::io::safetensors_file: " + path +
                                                  ": the tensor \"scales\" has elements of the type \"" +
                                                  name + "\", which is unknown";
      }
      return false;
    };
    CHECK(is_refused([&] { static_cast<void>(file.load<std::uint8_t>("scales")); }));
    CHECK(is_refused([&] { static_cast<void>(file.load<float>("scales", ferry::io::convert_dtype{})); }));
    CHECK(is_refused([&] { static_cast<void>(file.load<code>("scales", 0, 1)); }));
    CHECK(is_refused([&] { file.load("scales", loaded); }));
    CHECK(is_refused([&] { static_cast<void>(file.map<std::uint8_t>("scales")); }));
    CHECK(loaded == std::vector<std::uint8_t>(3, 7));
  }
}

TEMPLATE_TEST_CASE("a file of the reference implementation loads", "[io][safetensors]", ferry::device_space,
                   ferry::mapped_space) {
  const auto m = ferry::io::open_safetensors(golden("all.safetensors"));
  REQUIRE(m.metadata().size() == 1);
  CHECK((m.metadata()[0].first == "format" && m.metadata()[0].second == "pt"));
  CHECK(m.names().size() == 17);
  CHECK(m.contains("w"));
  CHECK_FALSE(m.contains("v"));
  CHECK(m.dtype("brain") == "BF16");
  CHECK(m.shape("cube") == std::vector<std::size_t>{4, 3, 5});
  CHECK(m.shape("one").empty());
  const auto load = [&](const char* name, auto element) {
    const auto table = m.template load<decltype(element), TestType>(name);
    CHECK(table.label() == name);
    return table.size() != 0 && is_golden(take(table));
  };
  CHECK(load("w", float{}));
  CHECK(load("bias", double{}));
  CHECK(load("half", ferry::half_t{}));
  CHECK(load("brain", ferry::bhalf_t{}));
  CHECK(load("i8", std::int8_t{}));
  CHECK(load("i16", std::int16_t{}));
  CHECK(load("i32", std::int32_t{}));
  CHECK(load("i64", std::int64_t{}));
  CHECK(load("u8", std::uint8_t{}));
  CHECK(load("u16", std::uint16_t{}));
  CHECK(load("u32", std::uint32_t{}));
  CHECK(load("u64", std::uint64_t{}));
  CHECK(load("größe \"x\"\n", float{}));
  CHECK(load("one", float{}));
  CHECK(m.template load<float, TestType>("none").width() == 3);
  CHECK(m.template load<float, TestType>("cube").rank() == 3);
  const ferry::tensor<bool, TestType> flags = m.template load<bool, TestType>("flags");
  CHECK(flags.rows() == 7);
}

TEMPLATE_TEST_CASE("rows of a tensor load without the others", "[io][safetensors]", ferry::device_space,
                   ferry::pageable_space) {
  const auto m = ferry::io::open_safetensors(golden("all.safetensors"));
  const auto part = m.template load<float, TestType>("cube", 1, 3);
  CHECK((part.rank() == 3 && part.rows() == 2 && part.width() == 15));
  const auto content = golden_values<float>(60);
  CHECK(take(part) == std::vector<float>(content.begin() + 15, content.begin() + 45));
  CHECK(m.template load<float, TestType>("cube", 4, 4).rows() == 0);
  CHECK(take(m.template load<double, TestType>(exec_space{}, "bias", 0, 0)).empty());
  CHECK(is_golden(take(m.template load<double, TestType>(exec_space{}, "bias"))));
  CHECK_THROWS_AS((m.template load<float, TestType>("cube", 1, 5)), ferry::out_of_range);
  CHECK_THROWS_AS((m.template load<float, TestType>("cube", 3, 1)), ferry::out_of_range);
  CHECK_THROWS_AS((m.template load<float, TestType>("cube", -1, 1)), ferry::out_of_range);
}

TEST_CASE("a wrong name or type of a tensor", "[io][safetensors]") {
  const auto m = ferry::io::open_safetensors(golden("all.safetensors"));
  CHECK_THROWS_MATCHES(
      m.load<float>("v"), ferry::out_of_range,
      MessageMatches(ContainsSubstring("all.safetensors") &&
                     ContainsSubstring("no tensor \"v\"; the file has \"") && ContainsSubstring("\"bias\"")));
  CHECK_THROWS_MATCHES(
      m.load<float>("bias"), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("\"bias\"") && ContainsSubstring("float64 (F64), not float32")));
  CHECK(is_golden(take(m.load<float>("bias", ferry::io::convert_dtype{}))));
  CHECK(is_golden(take(m.load<double>("brain", ferry::io::convert_dtype{}))));
  CHECK(take(m.load<double>("i16", 2, 3, ferry::io::convert_dtype{}))[0] == golden_value<double>(2));
  CHECK_THROWS_AS(m.load<float>("flags", ferry::io::convert_dtype{}), ferry::invalid_argument);
  CHECK_THROWS_AS((m.load<float, ferry::mapped_space, ferry::extents<ferry::dyn, 4>>("w")),
                  ferry::invalid_argument);
}

TEST_CASE("a missing tensor lists the names that are there, but not thousands", "[io][safetensors]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/m.safetensors";
  const std::vector<float> element(1, 1.0F);
  const auto words_of = [&](std::size_t count) {
    std::vector<ferry::io::named_array> arrays;
    for (std::size_t i = 0; i < count; ++i)
      arrays.emplace_back("tensor " + std::to_string(1000 + i), element);
    ferry::io::save_safetensors(path, arrays);
    try {
      static_cast<void>(ferry::io::open_safetensors(path).load<float>("w"));
    } catch (const ferry::out_of_range& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(words_of(0).ends_with("there is no tensor \"w\"; the file has none"));
  CHECK(words_of(2).ends_with("there is no tensor \"w\"; the file has \"tensor 1000\", \"tensor 1001\""));
  const std::string many = words_of(5000);
  CHECK(many.size() < 1300);
  CHECK(many.ends_with(" more"));
}

TEST_CASE("a saved file has the reference implementation's bytes", "[io][safetensors]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/m.safetensors";
  const auto m = ferry::io::open_safetensors(golden("all.safetensors"));
  const auto brain = m.load<ferry::bhalf_t, ferry::device_space>("brain");
  const auto cube = m.load<float, ferry::mapped_space>("cube");
  const auto none = m.load<float>("none");
  const auto flags = m.load<bool>("flags");
  const auto half = m.load<ferry::half_t, ferry::pinned_space>("half");
  // A column-major View is written in row-major order.
  const Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> w("w", 5, 3);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j) w(i, j) = golden_value<float>(3 * i + j);
  const Kokkos::View<float, Kokkos::HostSpace> single("one");
  single() = -4.0f;
  const auto i8 = golden_values<std::int8_t>(7);
  const auto u8 = golden_values<std::uint8_t>(7);
  const auto i16 = golden_values<std::int16_t>(7);
  const auto u16 = golden_values<std::uint16_t>(7);
  const auto i32 = golden_values<std::int32_t>(7);
  const auto u32 = golden_values<std::uint32_t>(7);
  const auto i64 = golden_values<std::int64_t>(7);
  const auto u64 = golden_values<std::uint64_t>(7);
  const auto bias = golden_values<double>(3);
  const auto quoted = golden_values<float>(1);
  ferry::io::save_safetensors(path,
                              {{"w", w},
                               {"i8", i8},
                               {"u8", u8},
                               {"flags", flags},
                               {"i16", i16},
                               {"u16", u16},
                               {"half", half},
                               {"brain", brain},
                               {"i32", i32},
                               {"u32", u32},
                               {"i64", i64},
                               {"u64", u64},
                               {"bias", bias},
                               {"größe \"x\"\n", quoted},
                               {"none", none},
                               {"one", single},
                               {"cube", cube}},
                              {{"format", "pt"}});
  const auto reopened = ferry::io::open_safetensors(path);
  CHECK(reopened.names() == m.names());
  // ferry's arrays have at least one extent.
  CHECK(reopened.shape("one") == std::vector<std::size_t>{1});
  const std::string ours = bytes_of(path);
  const std::string theirs = bytes_of(golden("all.safetensors"));
  const std::size_t data = 4 * (15 + 7 * 2 + 1 + 1 + 60) + 8 * (14 + 3) + 2 * (15 * 2 + 14) + 21;
  CHECK((ours.substr(ours.size() - data) == theirs.substr(theirs.size() - data)));
  std::string header = ours.substr(8, ours.size() - data - 8);
  const std::size_t place = header.find("\"one\":{\"dtype\":\"F32\",\"shape\":[1]");
  REQUIRE(place != std::string::npos);
  header.erase(header.find("[1]", place) + 1, 1);
  header.erase(header.find_last_not_of(' ') + 1);
  std::string expected = theirs.substr(8, theirs.size() - data - 8);
  expected.erase(expected.find_last_not_of(' ') + 1);
  CHECK(header == expected);
  CHECK((ours.size() - data) % 8 == 0);
}

TEST_CASE("tables are saved by the line of the documentation", "[io][safetensors]") {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/m.safetensors";
  const auto content = values<float>(random, 513 * 9);
  const auto few = values<double>(random, 9);
  auto table = make<ferry::mapped_space>("weights", 513, 9, content);
  auto bias = make<ferry::device_space>("bias", few);
  ferry::io::save_safetensors(path, {{"w", table}, {"b", bias}});
  {
    auto m = ferry::io::open_safetensors(path);
    CHECK(m.metadata().empty());
    CHECK(same_bits(take(m.load<float, ferry::device_space>("w")), content));
    CHECK(same_bits(take(m.load<double>("b")), few));
  }
  ferry::io::save_safetensors(exec_space{}, path, {{"part", table.first(2)}}, {{"a", "1"}, {"b", "\x01\t"}});
  const auto m = ferry::io::open_safetensors(path);
  CHECK((m.names() == std::vector<std::string>{"part"} && m.shape("part")[0] == 2));
  CHECK(m.metadata()[1].second == "\x01\t");
  std::vector<ferry::io::named_array> many;
  many.emplace_back("x", table);
  ferry::io::save_safetensors(path, std::span<const ferry::io::named_array>(many));
  CHECK(ferry::io::open_safetensors(path).contains("x"));
  ferry::io::save_safetensors(path, {});
  CHECK(ferry::io::open_safetensors(path).names().empty());
  CHECK(bytes_of(path) == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST_CASE("names that a header can't hold are refused, and an old file stays", "[io][safetensors]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/m.safetensors";
  const std::vector<float> w(3);
  ferry::io::save_safetensors(path, {{"w", w}});
  const std::string before = bytes_of(path);
  CHECK_THROWS_MATCHES(ferry::io::save_safetensors(path, {{"w", w}, {"v", w}, {"w", w}}),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring("\"w\" comes twice")));
  CHECK_THROWS_AS(ferry::io::save_safetensors(path, {{"__metadata__", w}}), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::save_safetensors(path, {{"\xff", w}}), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::save_safetensors(path, {{"w", w}}, {{"a", "b"}, {"a", "c"}}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::save_safetensors(path, {{"w", w}}, {{"a", "\xc0\xaf"}}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::save_safetensors(path, {{"w", ferry::tensor<float, ferry::pageable_space>()}}),
                  ferry::invalid_argument);
  CHECK(bytes_of(path) == before);
  CHECK(entries_of(folder.path()) == 1);
}

}  // namespace ferry_test::safetensors_test
