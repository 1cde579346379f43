// SPDX-License-Identifier: Apache-2.0
#include "fuzz/manifest_case.hpp"
#include "io/io_kit.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <complex>

/// Variables in checkpoints: texts, structs, engines of <random>, constants, vectors of another length.
namespace ferry_test::checkpoint_variables_test {

/// A struct with padding between and after its members.
struct settings {
  char mode = 'a';
  double rate = 0.5;
  std::int32_t seeds[3] = {1, 2, 3};
  bool operator==(const settings& second) const {
    return mode == second.mode && rate == second.rate && std::equal(seeds, seeds + 3, second.seeds);
  }
};
struct wide_settings {
  settings base;
  float more = 1.0F;
};
enum class phase : std::int16_t { warm = -3, cold = 7 };

/// Saves what `add` adds, and returns the folder.
template <class Add>
std::string saved(const temporary_folder& root, const char* name, const Add& add) {
  ferry::io::checkpoint run(root.path() + "/" + name);
  add(run);
  run.save();
  return run.path();
}
template <class... Argument>
std::string refusal(const std::string& path, const char* name, Argument&... argument) {
  return said<ferry::io_error>([&] {
    ferry::io::checkpoint run(path);
    run.add(name, argument...);
    run.load();
  });
}

TEST_CASE("texts of any content are saved and loaded", "[io][checkpoint][variables]") {
  const temporary_folder root;
  auto random = generator(701);
  std::string any(5000000, ' ');  // of two chunks
  for (auto& letter : any) letter = static_cast<char>(random());
  for (const std::string& content :
       {std::string(), std::string("a note"), std::string("\0x\xff\n", 4), any}) {
    std::string text = content;
    ferry::io::checkpoint run(root.path() + "/run");
    run.add("note", text);
    run.save();
    for (const std::string& before : {std::string(), std::string("longer than any small text may be: yes")}) {
      text = before;
      run.load();
      CHECK((text == content));
    }
    text += "more";
    run.save({.changes = true});
    text.clear();
    run.load();
    CHECK((text == content + "more"));
  }
}

TEST_CASE("lists of texts of any content and length are saved and loaded", "[io][checkpoint][variables]") {
  const temporary_folder root;
  auto random = generator(703);
  std::vector<std::string> any(3000);
  for (auto& text : any) {
    text.resize(random() % 3 == 0 ? 0 : random() % 4000);
    for (auto& letter : text) letter = static_cast<char>(random());
  }
  using list = std::vector<std::string>;
  list texts;
  ferry::io::checkpoint run(root.path() + "/run", {.keep = 20});
  run.add("texts", texts);
  std::vector<list> generations;
  for (const list& content : {list{}, list{""}, list{"", "", ""},
                              list{"a text that is long enough to lie on the heap, surely", "b"},
                              list{std::string("\0x\xff\n\0", 5), "", std::string(3, '\0')}, any}) {
    texts = content;
    run.save();
    generations.push_back(content);
    for (const list& before : {list{}, list{"x"}, any}) {
      texts = before;
      run.load();
      REQUIRE((texts == content));
    }
    if (!texts.empty()) texts.back() += "more";
    texts.insert(texts.begin(), "first");
    const list changed = texts;
    run.save({.changes = true});
    generations.push_back(changed);
    texts.clear();
    run.load();
    REQUIRE((texts == changed));
  }
  for (std::size_t i = 0; i < generations.size(); ++i) {
    run.load({.generation = i + 1});
    CHECK((texts == generations[i]));
  }
  auto saving = run.save_async(exec_space{});
  texts.assign(2, "later");
  saving.wait();
  run.load();
  CHECK((texts == generations.back()));
  // One of another kind, bytes that are no list, and constants.
  std::string text = "one";
  const std::string path = saved(root, "text", [&](auto& target) { target.add("texts", text); });
  CHECK(has(refusal(path, "texts", texts), "it is of kind 'text' in the file, and of kind 'texts' here"));
  const list model{"user", "item"};
  const std::string constant = saved(root, "constant", [&](auto& target) { target.add("texts", model); });
  CHECK(refusal(constant, "texts", model).empty());
  const list longer{"user", "item", ""}, renamed{"user", "place"};
  CHECK(
      has(refusal(constant, "texts", longer), "has 2 texts in the file, and 3 here; it was added as const"));
  CHECK(has(refusal(constant, "texts", renamed), "text 1 is 'item' in the file, and 'place' here; it was"));
  std::string manifest = bytes_of(constant + "/manifest");
  const auto put_extent = [&](const std::string& pattern, const std::string& replacement) {
    manifest.replace(manifest.find(pattern), pattern.size(), replacement);
    seal_manifest(manifest);
    write_bytes(constant + "/manifest", manifest);
  };
  put_extent("\"extents\":[24]", "\"extents\":[23]");
  std::string data = bytes_of(constant + "/data-1").substr(4096, 23);
  const std::uint32_t checksum = ferry::detail::crc32c(data.data(), data.size());
  const std::size_t piece = manifest.find("[0,4096,") + 8;
  put_extent(manifest.substr(piece, manifest.find(']', piece) - piece), std::to_string(checksum));
  texts = {"kept"};
  CHECK(has(refusal(constant, "texts", texts), "its bytes in the file are no list of texts"));
  CHECK((texts == list{"kept"}));
}

TEST_CASE("structs are saved by their bytes without padding", "[io][checkpoint][variables]") {
  const temporary_folder root;
  // Two equal structs in memory of different bytes give the same files.
  std::vector<std::string> files;
  for (const int filler : {0x00, 0xAB}) {
    alignas(settings) unsigned char memory[sizeof(settings)];
    std::memset(memory, filler, sizeof memory);
    auto& object = *new (memory) settings;
    object.rate = 0.25;
    const std::string path =
        saved(root, filler == 0 ? "zeros" : "others", [&](auto& run) { run.add("settings", object); });
    files.push_back(bytes_of(path + "/data-1"));
  }
#if defined(__GNUC__) && !defined(__clang__)
  CHECK(files[0] == files[1]);
#endif
  settings loaded{'z', 9.0, {0, 0, 0}};
  ferry::io::checkpoint run(root.path() + "/zeros");
  run.add("settings", loaded);
  run.load();
  CHECK(loaded == settings{'a', 0.25, {1, 2, 3}});

  // Types of the standard library that are trivially copyable, enumerators, and small floats.
  std::complex<float> number(1, -2);
  std::optional<int> maybe = 5;
  phase now = phase::warm;
  ferry::bhalf_t small(1.5F);
  const auto add_to = [&](ferry::io::checkpoint& target) {
    target.add("complex", number);
    target.add("optional", maybe);
    target.add("phase", now);
    target.add("small", small);
  };
  const std::string path = saved(root, "types", add_to);
  number = 0;
  maybe.reset();
  now = phase::cold;
  small = ferry::bhalf_t(0.0F);
  ferry::io::checkpoint types(path);
  add_to(types);
  types.load();
  CHECK(number == std::complex<float>(1, -2));
  CHECK(maybe == 5);
  CHECK(now == phase::warm);
  CHECK(static_cast<float>(small) == 1.5F);
}

TEST_CASE("a struct of another size or layout is refused, and both are named",
          "[io][checkpoint][variables]") {
  const temporary_folder root;
  settings object;
  const std::string path = saved(root, "run", [&](auto& run) { run.add("settings", object, "settings 1"); });
  const settings before{'q', 4.0, {7, 8, 9}};
  object = before;
  CHECK(has(refusal(path, "settings", object),
            "entry 'settings': it is a struct of 32 bytes with the layout 'settings 1' in the file, and a "
            "struct of 32 bytes without the name of a layout here"));
  const std::string second_layout = "settings 2";
  CHECK(has(refusal(path, "settings", object, second_layout),
            "with the layout 'settings 1' in the file, and a struct of 32 bytes with the layout "
            "'settings 2' here"));
  wide_settings wide;
  CHECK(has(refusal(path, "settings", wide),
            "a struct of 32 bytes with the layout 'settings 1' in the file, and "
            "a struct of 40 bytes"));
  CHECK(has(refusal(path, "options", object), "the file has no such entry; it has 'settings'"));
  int number = 0;
  CHECK(
      has(refusal(path, "settings", number), "it is of kind 'struct' in the file, and of kind 'value' here"));
  CHECK(object == before);
  ferry::io::checkpoint run(path);
  CHECK_THROWS_AS(run.add("settings", object, std::string("a\0b", 3)), ferry::invalid_argument);
  run.add("settings", object, "settings 1");
  run.load();
  CHECK(object == settings{});
}

/// An engine or a distribution goes on with the numbers that the saved one would have given.
template <class Random, class Draw>
void check_random(const Random& begin, const Draw& draw) {
  const temporary_folder root;
  Random original = begin;
  for (int i = 0; i < 13; ++i) static_cast<void>(draw(original));
  ferry::io::checkpoint run(root.path() + "/run");
  run.add("random", original);
  run.save();
  Random copy = begin;
  ferry::io::checkpoint loading(root.path() + "/run");
  loading.add("random", copy);
  loading.load();
  for (int i = 0; i < 1000; ++i) REQUIRE(draw(original) == draw(copy));
}

TEST_CASE("engines and distributions of <random> go on where they were saved",
          "[io][checkpoint][variables]") {
  const auto draw = [](auto& engine) { return engine(); };
  check_random(std::mt19937(3), draw);
  check_random(std::mt19937_64(4), draw);
  check_random(std::minstd_rand(5), draw);
  check_random(std::ranlux48(6), draw);
  check_random(std::knuth_b(7), draw);
  check_random(std::independent_bits_engine<std::mt19937, 17, std::uint32_t>(8), draw);
  // A normal distribution makes two numbers at once and keeps one.
  struct pair {
    std::mt19937_64 engine{9};
    std::normal_distribution<double> normal{1.0, 2.0};
  };
  const temporary_folder root;
  pair first, second;
  static_cast<void>(first.normal(first.engine));
  const auto add_to = [](ferry::io::checkpoint& run, pair& source) {
    run.add("engine", source.engine);
    run.add("normal", source.normal);
  };
  const std::string path = saved(root, "run", [&](auto& run) { add_to(run, first); });
  ferry::io::checkpoint run(path);
  add_to(run, second);
  run.load();
  for (int i = 0; i < 100; ++i) REQUIRE(first.normal(first.engine) == second.normal(second.engine));

  std::minstd_rand small;
  const std::minstd_rand untouched = small;
  CHECK(has(refusal(path, "engine", small), "entry 'engine': it is std::mersenne_twister_engine<"));
  CHECK(small == untouched);
}

TEST_CASE("constants are compared, and a difference names both values", "[io][checkpoint][variables]") {
  const temporary_folder root;
  int epochs = 3;
  double rate = 0.1;
  bool shuffles = true;
  std::string model = "wide";
  std::string poem(500, 'x');
  settings object;
  std::mt19937 engine(4);
  std::vector<float> factors{1, 2, 3, 4, 5, 6};
  auto table = make<ferry::device_space>("table", 3, 2, factors);
  const auto add_to = [](ferry::io::checkpoint& run, auto& a, auto& b, auto& c, auto& d, auto& e, auto& f,
                         auto& g, auto& h, auto& i) {
    run.add("epochs", a);
    run.add("rate", b);
    run.add("shuffles", c);
    run.add("model", d);
    run.add("poem", e);
    run.add("settings", f);
    run.add("engine", g);
    run.add("factors", h);
    run.add("table", i);
  };
  const std::string path = saved(root, "run", [&](auto& run) {
    add_to(run, epochs, rate, shuffles, model, poem, object, engine, factors, table);
  });
  const auto load_const = [&](const std::string& folder) {
    return said<ferry::io_error>([&] {
      ferry::io::checkpoint run(folder);
      add_to(run, std::as_const(epochs), std::as_const(rate), std::as_const(shuffles), std::as_const(model),
             std::as_const(poem), std::as_const(object), std::as_const(engine), std::as_const(factors),
             std::as_const(table));
      run.load();
    });
  };
  CHECK(load_const(path).empty());
  // The constants themselves are saved as variables are.
  const std::string const_path = saved(root, "again", [&](auto& run) {
    add_to(run, std::as_const(epochs), std::as_const(rate), std::as_const(shuffles), std::as_const(model),
           std::as_const(poem), std::as_const(object), std::as_const(engine), std::as_const(factors),
           std::as_const(table));
  });
  CHECK(load_const(const_path).empty());

  const auto differs = [&](auto& variable, const auto& value, const std::string& sentence) {
    auto before = std::exchange(variable, value);
    const std::string words = load_const(path);
    INFO(words);
    CHECK(has(words, sentence + "; it was added as const, so it is compared"));
    variable = std::move(before);
  };
  differs(epochs, 4, "entry 'epochs': is 3 in the file, and 4 here");
  differs(rate, 0.25, "entry 'rate': is 0.1 in the file, and 0.25 here");
  differs(rate, std::numeric_limits<double>::quiet_NaN(), "is 0.1 in the file, and nan here");
  differs(shuffles, false, "entry 'shuffles': is true in the file, and false here");
  differs(model, "wider", "entry 'model': is 'wide' in the file, and 'wider' here");
  poem[300] = 'y';
  CHECK(has(load_const(path), "and '...xxxxxxxxxxxxxxxxxxxxy"));
  CHECK(has(load_const(path), "here, from byte 300 on"));
  poem[300] = 'x';
  differs(
      object, settings{'a', 0.5, {1, 2, 4}},
      "entry 'settings': is 0x0300000000000000 in the file, and 0x0400000000000000 here, from byte 24 of 32 on");
  differs(engine, std::mt19937(5), "here");
  differs(factors, std::vector<float>{1, 2, 3, 4.5F, 5, 6},
          "entry 'factors': element [3] is 4 in the file, and 4.5 here");
  const std::vector<float> before = std::exchange(factors, std::vector<float>{1, 2});
  CHECK(has(load_const(path), "entry 'factors': is f32 [6] in the file, and 'vector' is f32 [2]"));
  factors = before;
  put(table, std::vector<float>{1, 2, 3, 4, -5, 6});
  CHECK(has(load_const(path), "element [2, 0] is 5 in the file, and -5 here"));
  put(table, factors);
  CHECK(load_const(path).empty());
}

TEST_CASE("a constant that differs leaves the variables as they were", "[io][checkpoint][variables]") {
  const temporary_folder root;
  std::string text = "first";
  std::vector<int> list{1, 2, 3};
  int version = 1;
  std::mt19937 engine(1);
  settings object;
  const auto add_to = [&](ferry::io::checkpoint& run) {
    run.add("text", text);
    run.add("list", list);
    run.add("engine", engine);
    run.add("settings", object);
    run.add("version", std::as_const(version));
  };
  const std::string path = saved(root, "run", add_to);
  text = "second";
  list = {4, 5};
  version = 2;
  static_cast<void>(engine());
  const std::mt19937 engine_before = engine;
  object.mode = 'm';
  ferry::io::checkpoint run(path);
  add_to(run);
  CHECK_THROWS_AS(run.load(), ferry::io_error);
  CHECK(text == "second");
  CHECK(list == std::vector<int>{4, 5});
  CHECK(engine == engine_before);
  CHECK(object.mode == 'm');
  version = 1;
  run.load();
  CHECK(text == "first");
  CHECK(list == std::vector<int>{1, 2, 3});
  CHECK(engine == std::mt19937(1));
  CHECK(object == settings{});
}

TEST_CASE("a load gives a vector the length that was saved", "[io][checkpoint][variables]") {
  const temporary_folder root;
  auto random = generator(702);
  ferry::io::checkpoint run(root.path() + "/run");
  std::vector<float> list;
  run.add("list", list);
  for (const std::size_t size : {0, 1, 17, 1200000, 5}) {
    const auto content = values<float>(random, size);
    list = content;
    run.save();
    for (const std::size_t length : {0, 3, 2000000}) {
      list.assign(length, -1.0F);
      run.load();
      REQUIRE((list == content));
    }
    // Another element type is converted on the way; another type without that is refused.
    std::vector<double> doubles(2, -1.0);
    ferry::io::checkpoint converting(root.path() + "/run");
    converting.add("list", doubles);
    CHECK_THROWS_AS(converting.load(), ferry::io_error);
    CHECK(doubles == std::vector<double>(2, -1.0));
    converting.load({.convert = true});
    CHECK((doubles == std::vector<double>(content.begin(), content.end())));
  }
  // A matrix is no list.
  auto table = make<ferry::pageable_space>("table", 3, 2, std::vector<float>(6));
  const std::string path = saved(root, "table", [&](auto& target) { target.add("list", table); });
  CHECK(has(refusal(path, "list", list), "is f32 [3 x 2] in the file, and 'vector' is f32 [5]"));
}

TEST_CASE("a background save takes variables as they are at the call", "[io][checkpoint][variables]") {
  const temporary_folder root;
  std::string text = "at the call";
  std::mt19937 engine(11);
  settings object;
  ferry::io::checkpoint run(root.path() + "/run");
  run.add("text", text);
  run.add("engine", engine);
  run.add("settings", object);
  auto saving = run.save_async(exec_space{});
  text = "later, and of another length";
  static_cast<void>(engine());
  object.mode = 'l';
  saving.wait();
  run.load();
  CHECK(text == "at the call");
  CHECK(engine == std::mt19937(11));
  CHECK(object == settings{});
}

TEST_CASE("damaged variables are refused", "[io][checkpoint][variables]") {
  const temporary_folder root;
  std::string text = "a text";
  std::mt19937 engine(11);
  const std::string path = saved(root, "run", [&](auto& run) {
    run.add("text", text);
    run.add("engine", engine);
  });
  std::string bytes = bytes_of(path + "/data-1");
  for (const std::size_t place : {std::size_t{4096}, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    write_bytes(path + "/data-1", damaged);
    const std::string words = said<ferry::io_error>([&] {
      ferry::io::checkpoint run(path);
      run.add("text", text);
      run.add("engine", engine);
      run.load();
    });
    CHECK(has(words, "is damaged: the checksum of"));
  }
}

}  // namespace ferry_test::checkpoint_variables_test
