// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>
#include <ferry/io/checkpoint.hpp>

/// Arrays that go through a checkpoint.
namespace ferry_test::checkpoint_test {

struct particle {
  float position[3];
  std::int16_t kind;
  bool operator==(const particle&) const = default;
};

template <class T>
std::vector<T> random_elements(std::mt19937_64& random, std::size_t count) {
  std::vector<T> result(count);
  auto* bytes = reinterpret_cast<unsigned char*>(result.data());
  for (std::size_t i = 0; i < count * sizeof(T); ++i) bytes[i] = static_cast<unsigned char>(random());
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEMPLATE_TEST_CASE("a table of every type comes back from a checkpoint", "[io][checkpoint]", float, double,
                   ferry::half_t, ferry::bhalf_t, std::int8_t, std::uint16_t, std::int64_t, particle) {
  const temporary_folder folder;
  auto random = generator(301);
  // Sizes on both sides of a chunk of 4 MiB.
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{70000}}) {
    const std::size_t width = rows == 70000 ? 37 : 5;
    const auto values = random_elements<TestType>(random, rows * width);
    auto table = make<ferry::mapped_space>("weights", rows, width, values);
    {
      ferry::io::checkpoint run(folder.path() + "/run");
      run.add("weights", table);
      run.save();
    }
    ferry::tensor<TestType, ferry::device_space> loaded("loaded", rows, width);
    put(loaded, random_elements<TestType>(random, rows * width));
    ferry::io::checkpoint run(folder.path() + "/run");
    run.add("weights", loaded);
    run.load();
    CHECK(same_bits(take(loaded), values));
  }
}

TEMPLATE_TEST_CASE("a checkpoint is loaded into any memory space", "[io][checkpoint]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const temporary_folder folder;
  auto random = generator(302);
  const auto values = random_elements<std::uint32_t>(random, 999 * 17);
  auto source = make<TestType>("from", 999, 17, values);
  ferry::io::checkpoint saving(folder.path() + "/run");
  saving.add("table", source);
  saving.save();
  const auto check = [&]<class Space>(Space) {
    ferry::tensor<std::uint32_t, Space> target("to", 999, 17);
    put(target, std::vector<std::uint32_t>(999 * 17, 7u));
    ferry::io::checkpoint loading(folder.path() + "/run");
    loading.add("table", target);
    loading.load();
    CHECK(take(target) == values);
  };
  check(ferry::device_space{});
  check(ferry::pinned_space{});
  check(ferry::mapped_space{});
  check(ferry::pageable_space{});
}

TEST_CASE("slices, strided views, vectors, long rows and numbers are saved", "[io][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(303);
  const auto content = random_elements<float>(random, 100 * 24);
  auto table = make<ferry::pageable_space>("table", 100, 24, content);
  // A row of 300 KB, a tensor of rank 3.
  auto longer = make<ferry::pageable_space>("long", 40, 77000, random_elements<float>(random, 40 * 77000));
  ferry::tensor<double, ferry::pageable_space> cube("cube", 3, 4, 5);
  put(cube, random_elements<double>(random, 60));
  std::vector<std::int64_t> list{1, -2, 3};
  double loss = 0.25;
  std::int32_t epoch = -7;
  bool warm = true;
  const auto strided = Kokkos::subview(ferry::to_kokkos(table), Kokkos::ALL, std::pair<int, int>(5, 16));

  const auto add_all = [&](ferry::io::checkpoint& run) {
    run.add("slice", table.rows_between(90, 97));
    run.add("strided", strided);
    run.add("long", longer);
    run.add("cube", cube);
    run.add("list", list);
    run.add("loss", loss);
    run.add("epoch", epoch);
    run.add("warm", warm);
  };
  const auto longer_before = take(longer);
  const auto cube_before = take(cube);
  ferry::io::checkpoint run(folder.path() + "/run");
  add_all(run);
  run.save();

  put(table, std::vector<float>(100 * 24, -1.0f));
  put(longer, std::vector<float>(40 * 77000, -1.0f));
  put(cube, std::vector<double>(60, -1.0));
  list = {0, 0, 0};
  loss = 1;
  epoch = 1;
  warm = false;
  run.load();
  const auto now = take(table);
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < 100; ++r)
    for (std::size_t c = 0; c < 24; ++c) {
      const bool saved = (r >= 90 && r < 97) || (c >= 5 && c < 16);
      const float want = saved ? content[r * 24 + c] : -1.0f;
      wrong += std::memcmp(&now[r * 24 + c], &want, sizeof want) != 0 ? 1 : 0;
    }
  CHECK(wrong == 0);
  CHECK(same_bits(take(longer), longer_before));
  CHECK(same_bits(take(cube), cube_before));
  CHECK(list == std::vector<std::int64_t>{1, -2, 3});
  CHECK(loss == 0.25);
  CHECK(epoch == -7);
  CHECK(warm);
}

TEST_CASE("floating-point elements are converted on request", "[io][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(305);
  std::uniform_real_distribution<float> any(-4.0f, 4.0f);
  std::vector<float> values(70000 * 33);
  for (auto& element : values) element = any(random);
  auto table = make<ferry::pageable_space>("table", 70000, 33, values);
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  run.save();

  ferry::tensor<ferry::bhalf_t, ferry::device_space> narrow("narrow", 70000, 33);
  ferry::tensor<double, ferry::device_space> wide("wide", 70000, 33);
  ferry::tensor<std::int32_t, ferry::device_space> whole("whole", 70000, 33);
  ferry::io::checkpoint to_narrow(folder.path() + "/run"), to_wide(folder.path() + "/run"),
      to_whole(folder.path() + "/run");
  to_narrow.add("table", narrow);
  to_wide.add("table", wide);
  to_whole.add("table", whole);
  CHECK_THROWS_WITH(to_narrow.load(), ContainsSubstring("f32 [70000 x 33]") &&
                                          ContainsSubstring("bf16 [70000 x 33]") &&
                                          ContainsSubstring("load_options::convert"));
  CHECK_THROWS_WITH(to_whole.load({.convert = true}), ContainsSubstring("i32 [70000 x 33]"));
  to_narrow.load({.convert = true});
  to_wide.load({.convert = true});
  const auto n = take(narrow);
  const auto w = take(wide);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    wrong += static_cast<float>(n[i]) != static_cast<float>(ferry::bhalf_t(values[i])) ||
                     w[i] != static_cast<double>(values[i])
                 ? 1
                 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("what does not fit is refused and changes nothing", "[io][checkpoint]") {
  const temporary_folder folder;
  auto random = generator(306);
  auto first = make<ferry::pageable_space>("first", 30, 4, random_elements<float>(random, 120));
  auto second = make<ferry::pageable_space>("second", 10, 4, random_elements<float>(random, 40));
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("first", first);
  run.add("second", second);
  run.save();

  const std::vector<float> before(120, 5.0f);
  auto mine = make<ferry::pageable_space>("mine", 30, 4, before);
  const auto refuses = [&](auto& object, const char* name, const std::string& sentence) {
    ferry::io::checkpoint loading(folder.path() + "/run");
    loading.add("first", mine);
    loading.add(name, object);
    CHECK_THROWS_MATCHES(loading.load(), ferry::io_error, MessageMatches(ContainsSubstring(sentence)));
    CHECK(take(mine) == before);
  };
  auto wider = make<ferry::pageable_space>("wider", 10, 5, std::vector<float>(50));
  auto doubles = make<ferry::pageable_space>("doubles", 10, 4, std::vector<double>(40));
  refuses(wider, "second", "entry 'second': is f32 [10 x 4] in the file, and 'wider' is f32 [10 x 5]");
  refuses(doubles, "second", "is f32 [10 x 4] in the file, and 'doubles' is f64 [10 x 4]");
  refuses(second, "third", "entry 'third': the file has no such entry; it has 'first', 'second'");
  int number = 0;
  refuses(number, "second", "it is of kind 'array' in the file, and of kind 'value' here");
  const auto& fixed = second;
  second(3, 1) = 1.25F;
  refuses(fixed, "second", "entry 'second': element [3, 1] is ");

  ferry::io::checkpoint less(folder.path() + "/run");
  less.add("first", mine);
  CHECK_THROWS_MATCHES(
      less.load(), ferry::io_error,
      MessageMatches(ContainsSubstring("entry 'second'") && ContainsSubstring("load_options::partial")));
  CHECK(take(mine) == before);
  less.load({.partial = true});
  CHECK(same_bits(take(mine), take(first)));

  CHECK_THROWS_MATCHES(less.add("first", first), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("two objects are added as 'first'")));
  CHECK_THROWS_AS(less.add("", first), ferry::invalid_argument);
  ferry::tensor<float, ferry::pageable_space> empty;
  CHECK_THROWS_AS(less.add("empty", empty), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::checkpoint(""), ferry::invalid_argument);
  ferry::io::checkpoint nowhere(folder.path() + "/nowhere");
  nowhere.add("first", mine);
  CHECK_THROWS_AS(nowhere.load(), ferry::not_found);
}

}  // namespace ferry_test::checkpoint_test
