// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/test.hpp"

#include <sys/stat.h>
#include <clocale>
#include <cstdio>
#include <iterator>
#include <set>

namespace ferry_test::profile_file_test {

using ferry::machine_profile;
using namespace ferry::detail;

using part_of_identity = std::string machine_identity::*;

machine_identity some_machine() {
  machine_identity machine;
  machine.device = "Fast \"One\" \\ 2";
  machine.driver = "580.159 CUDA 13.0";
  machine.threads = "16";
  return machine;
}

/// Every number different from its default, with bits down to the last.
machine_profile some_profile() {
  std::mt19937_64 random{std::random_device{}()};
  std::uniform_real_distribution<double> any(1e-6, 1e6);
  machine_profile profile;
  for (const auto& field : profile_fields) profile.*field.member = any(random);
  profile.measured = bit_of(ferry::detail::reading::calls) | bit_of(ferry::detail::reading::cooperative);
  return profile;
}

/// Why the text is refused, empty where it is taken.
std::string refusal(std::string_view text, machine_profile& profile, bool& malformed) {
  return from_text(text, some_machine(), profile, malformed);
}

void replace(std::string& text, const std::string& pattern, const std::string& text_instead) {
  const auto position = text.find(pattern);
  REQUIRE(position != std::string::npos);
  text.replace(position, pattern.size(), text_instead);
}

TEST_CASE("every number of a profile has a name of its own", "[profile]") {
  std::set<std::string_view> names;
  const machine_profile usual;
  for (const auto& field : profile_fields) {
    names.insert(field.name);
    CHECK(is_usable(field, usual.*field.member));
  }
  CHECK(names.size() == std::size(profile_fields));
  CHECK(usual.measured == 0u);
}

TEST_CASE("lines of a key and a value are read", "[profile][lines]") {
  std::string why;
  const auto result = read_lines("a 1.5e3\n# a remark\n\nb  x \"y\" z\r\nempty \n", why);
  CHECK(why.empty());
  REQUIRE(result.size() == 3);
  CHECK(result[0].key == "a");
  CHECK(result[0].value == "1.5e3");
  CHECK(result[1].key == "b");
  CHECK(result[1].value == " x \"y\" z");
  CHECK(result[2].key == "empty");
  CHECK(result[2].value.empty());
  CHECK(read_lines("\n", why).empty());
  CHECK(why.empty());
}

TEST_CASE("what is no list of lines is refused with the reason", "[profile][lines]") {
  const auto refused = [](std::string_view text, const char* reason) {
    std::string why;
    read_lines(text, why);
    CAPTURE(text);
    CHECK_THAT(why, ContainsSubstring(reason));
  };
  refused("", "cut off");
  refused("a 1", "cut off");
  refused("a 1\nb 2", "cut off");
  refused("a\n", "line 1");
  refused("a 1\n b 2\n", "line 2");
  refused("a 1\nb\n", "line 2");
  refused("a 1\nb 2\na 3\n", "\"a\" a second time in line 3");
  // Files of earlier versions, whole and cut off.
  refused("{\n  \"device\": \"Fast One\",\n  \"call_us\": 11\n}\n", "is a JSON object");
  refused(" {", "is a JSON object");
}

TEST_CASE("a number is the whole of a value", "[profile][lines]") {
  CHECK(number_of("1500") == 1500.0);
  CHECK(number_of("-2.5e-3") == -0.0025);
  for (const std::string_view text :
       {"", " ", "x", "--1", "+1", " 1", "1 ", "1x", "0x10", "1,5", "nan", "inf", "-inf", "1e999"}) {
    CAPTURE(text);
    CHECK_FALSE(number_of(text).has_value());
  }
}

TEST_CASE("a value stays on its line", "[profile][lines]") {
  std::string text;
  add_line(text, "device", "two\nlines\tand\rmore");
  CHECK(text == "device two lines and more\n");
}

TEST_CASE("a profile reads back bit for bit", "[profile][lines]") {
  const machine_profile written = some_profile();
  const std::string text = to_text(written, some_machine());
  machine_profile read;
  bool malformed = true;
  CHECK(refusal(text, read, malformed).empty());
  CHECK_FALSE(malformed);
  CHECK(read == written);
}

TEST_CASE("a profile of another machine is known as such", "[profile][lines]") {
  const std::string text = to_text(some_profile(), some_machine());
  for (const part_of_identity part : {&machine_identity::device, &machine_identity::driver,
                                      &machine_identity::threads, &machine_identity::ferry}) {
    machine_identity changed = some_machine();
    changed.*part += "x";
    machine_profile read;
    bool malformed = true;
    const std::string why = from_text(text, changed, read, malformed);
    CHECK_THAT(why, ContainsSubstring("not "));
    CHECK_THAT(why,
               ContainsSubstring(in_quotes(changed.*part)) && ContainsSubstring("ferry::calibrate writes"));
    CHECK_FALSE(malformed);
    CHECK(read == machine_profile{});
  }
}

TEST_CASE("a damaged profile is refused as a whole", "[profile][lines]") {
  const std::string good = to_text(some_profile(), some_machine());
  machine_profile read;
  bool malformed = false;
  SECTION("cut off anywhere") {
    for (std::size_t length = 0; length < good.size(); length += 7) {
      CHECK_FALSE(refusal(good.substr(0, length), read, malformed).empty());
      CHECK(malformed);
    }
  }
  SECTION("numbers that no machine has") {
    for (const std::string bad : {"0", "-1", "-0.5"}) {
      std::string text = to_text(machine_profile{}, some_machine());
      replace(text, "device_gb_per_s 3500", "device_gb_per_s " + bad);
      CHECK_THAT(refusal(text, read, malformed), ContainsSubstring("device_gb_per_s"));
      CHECK(malformed);
    }
    std::string text = to_text(machine_profile{}, some_machine());
    replace(text, "\ncall_us 10.4", "\ncall_us 0");  // only added to others
    CHECK(refusal(text, read, malformed).empty());
  }
  SECTION("a number that is missing, or is none") {
    std::string text = good;
    replace(text, "\ncall_us ", "\nall_us ");
    CHECK_THAT(refusal(text, read, malformed), ContainsSubstring("\"call_us\""));
    CHECK(malformed);
    text = to_text(machine_profile{}, some_machine());
    replace(text, "\ncall_us 10.4", "\ncall_us \"10.4\"");
    CHECK_FALSE(refusal(text, read, malformed).empty());
  }
  SECTION("no machine") {
    std::string text = good;
    replace(text, "\ndriver ", "\nriver ");
    CHECK_FALSE(refusal(text, read, malformed).empty());
    CHECK(malformed);
  }
  CHECK(read.call_us * 0.0 == 0.0);
}

TEST_CASE("numbers do not depend on the locale", "[profile][lines]") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool commas = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    commas = commas || std::setlocale(LC_ALL, name) != nullptr;
  const std::string text = number_text(0.1);
  const auto result = number_of("0.1");
  std::setlocale(LC_ALL, before.c_str());
  CAPTURE(commas);
  CHECK(text == "0.1");
  CHECK(result == 0.1);
}

TEST_CASE("files are written as a whole, folders made", "[profile]") {
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/a/b/profile.txt";
  write_text(path, "first");
  write_text(path, "second");
  std::string why;
  bool missing = true;
  CHECK(read_text(path, why, missing) == "second");
  CHECK(why.empty());
  CHECK_FALSE(missing);
  CHECK(ferry_test::entries_of(folder.path() + "/a/b") == 1);

  read_text(folder.path() + "/none.txt", why, missing);
  CHECK(missing);
  why.clear();
  read_text(folder.path(), why, missing);
  CHECK(why == "can't be read: it is a folder");
  CHECK_FALSE(missing);
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  read_text(pipe, why, missing);
  CHECK(why == "can't be read: it is no ordinary file");
  CHECK_FALSE(missing);
  std::remove(pipe.c_str());
  write_text(path, "");
  read_text(path, why, missing);
  CHECK(why == "is empty");
  why.clear();
  write_text(path, std::string(100000, 'x'));
  read_text(path, why, missing);
  CHECK_THAT(why, ContainsSubstring("too long"));

  CHECK_THROWS_MATCHES(write_text(path + "/below/a/file", ""), ferry::io_error,
                       MessageMatches(ContainsSubstring(path + "/below/a/file")));
}

TEST_CASE("threads that write one file at once leave a whole one", "[profile]") {
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/profile.txt";
  const std::string texts[] = {std::string(1500, 'a'), std::string(1400, 'b'), std::string(1300, 'c')};
  write_text(path, texts[0]);
  std::atomic<int> failed{0}, mixed{0};
  {
    std::vector<std::thread> threads;
    for (const auto& text : texts)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 50; ++turn) try {
            write_text(path, text);
          } catch (const ferry::io_error&) {
            ++failed;
          }
      });
    for (int turn = 0; turn < 400; ++turn) {
      std::string why;
      bool missing = false;
      const std::string result = read_text(path, why, missing);
      if (missing || !why.empty() || std::find(std::begin(texts), std::end(texts), result) == std::end(texts))
        ++mixed;
    }
    for (auto& entry : threads) entry.join();
  }
  CHECK(failed == 0);
  CHECK(mixed == 0);
  CHECK(ferry_test::entries_of(folder.path()) == 1);
}

}  // namespace ferry_test::profile_file_test
