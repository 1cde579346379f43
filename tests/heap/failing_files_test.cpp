// SPDX-License-Identifier: Apache-2.0
#include "heap/heap.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <filesystem>
#include <new>

/// Files when memory runs out: no descriptor and no temporary file stays, old files are as they were, and a load
/// changes all of an object or nothing.
namespace ferry_test::failing_files_test {

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// The files of a folder, and when they were written.
using file_list = std::map<std::string, std::filesystem::file_time_type>;
file_list files_in(const std::string& folder) {
  file_list files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "lock")
      files[entry.path().filename()] = entry.last_write_time();
  return files;
}

/// Lets the k-th allocation of act(), in any thread, fail for k = 1, 2, ... until it has no k-th. After each
/// failure still() tells whether all is as it was.
template <class Begin, class Act, class Still>
int survive(const char* label, const Begin& begin, const Act& act, const Still& still) {
  int failures = 0;
  begin();
  act();  // what is made once, and kept
  for (std::int64_t k = 1;; ++k) {
    begin();
    const std::size_t before = descriptors();
    bool thrown = false;
    fail_allocation_anywhere(k);
    try {
      act();
    } catch (const std::bad_alloc&) {
      thrown = true;
    } catch (const ferry::bad_alloc&) {
      thrown = true;
    }
    const bool failed = fail_allocation_anywhere(0);
    INFO(label << ", allocation " << k);
    REQUIRE(descriptors() == before);
    if (thrown) {
      REQUIRE(failed);
      REQUIRE(still());
    }
    if (!failed) return failures;
    ++failures;
  }
}

/// True if two large arrays have the same bits: cheap enough for hundreds of comparisons.
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST_CASE("a save that lacks memory leaves the old file, and nothing else", "[failing_heap][io]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/a-file-whose-name-has-more-than-thirty-letters.npy";
  const std::vector<float> ones(5000, 1.0f), twos(6000, 2.0f);
  const std::vector<float> wide(3000, 2.0f);
  Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace> apart(const_cast<float*>(wide.data()),
                                                                       Kokkos::LayoutStride(100, 30, 20, 1));
  file_list before;
  const auto begin = [&] {
    ferry::io::save_npy(path, ones);
    before = files_in(folder.path());
  };
  const auto still = [&] { return files_in(folder.path()) == before; };
  CHECK(survive(
            "save_npy", begin, [&] { ferry::io::save_npy(path, twos); }, still) > 3);
  CHECK(survive(
            "save_npy of strided rows", begin, [&] { ferry::io::save_npy(path, apart); }, still) > 3);
  CHECK(survive(
            "save_safetensors", begin,
            [&] {
              ferry::io::save_safetensors(path, {{"the first of two tensors", ones}, {"the second", twos}});
            },
            still) > 3);
  CHECK(files_in(folder.path()).size() == 1);
}

TEST_CASE("a load of a file that lacks memory changes nothing", "[failing_heap][io]") {
  const temporary_folder folder;
  const std::string npy = folder.path() + "/a-file-whose-name-has-more-than-thirty-letters.npy";
  const std::string tensors = folder.path() + "/a-file-whose-name-has-more-than-thirty-letters.safetensors";
  auto random = generator(31);
  const auto content = values<float>(random, 2500000);  // two pieces, by two threads
  ferry::io::save_npy(npy, content);
  ferry::io::save_safetensors(tensors, {{"w", content}});
  std::vector<float> array(content.size());
  std::vector<double> converted(content.size());
  const std::vector<float> sevens(content.size(), 7.0f);
  const std::vector<double> converted_sevens(content.size(), 7.0);
  const auto begin = [&] {
    array = sevens;
    converted = converted_sevens;
  };
  const auto still = [&] { return equal(array, sevens) && equal(converted, converted_sevens); };
  CHECK(survive(
            "load_npy", begin, [&] { ferry::io::load_npy(npy, array); }, still) > 3);
  CHECK((array == content));
  CHECK(survive(
            "load_npy, converted", begin,
            [&] { ferry::io::load_npy(npy, converted, ferry::io::convert_dtype{}); }, still) > 3);
  CHECK(survive(
            "load_npy of a new tensor", begin, [&] { static_cast<void>(ferry::io::load_npy<float>(npy)); },
            still) > 3);
  CHECK(survive(
            "map_npy", begin, [&] { static_cast<void>(ferry::io::map_npy<float>(npy)); }, still) > 3);
  CHECK(survive(
            "safetensors", begin, [&] { ferry::io::open_safetensors(tensors).load("w", array); }, still) > 3);
  CHECK((array == content));
}

TEST_CASE("a checkpoint that lacks memory is saved and loaded as a whole or not at all",
          "[failing_heap][io]") {
  // In memory where there is such a file system: hundreds of saves would wait for a disk.
  const environment_variable in_memory(
      "TMPDIR", std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::getenv("TMPDIR"));
  const temporary_folder folder;
  const std::string path = folder.path() + "/a-folder-whose-name-has-more-than-thirty-letters";
  const Kokkos::DefaultExecutionSpace exec;
  auto random = generator(32);
  const auto content = values<float>(random, 1060000);  // two chunks
  std::vector<float> large = content, halves(40, 0.5f), memory(300, 0.25f);
  Kokkos::View<float**, Kokkos::LayoutStride, Kokkos::HostSpace> strided(memory.data(),
                                                                         Kokkos::LayoutStride(20, 15, 10, 1));
  std::int64_t epoch = 3;
  const std::string first_note = "a note that is longer than the room inside of a text";
  std::string note = first_note;
  std::mt19937 engine(3);
  std::vector<double> list(3, 0.5);
  struct settings {
    char kind = 'k';
    double rate = 0.5;
  } options;
  const std::int64_t version = 1;
  ferry::optim::adam adam{.lr = 1e-2};
  ferry::tensor<float, ferry::device_space> weights("weights", 60, 8), grads("grads", 4, 8);
  ferry::init::constant(exec, weights, 1.0f);
  ferry::init::constant(exec, grads, 1.0f);
  auto state = ferry::optim::make_state(adam, weights);
  const auto step = [&] {
    ferry::step(exec, adam, weights, state, std::vector<int>{1, 5, 7, 59}, grads,
                ferry::step_count::catch_up{})
        .wait();
  };
  std::vector<double> as_doubles(40, 7.0);
  const auto add_to = [&](ferry::io::checkpoint& run) {
    run.add("a large array of several chunks", large);
    run.add("strided", strided);
    run.add("epoch", epoch);
    run.add("note", note);
    run.add("engine", engine);
    run.add("list", list);
    run.add("options", options, "options 1");
    run.add("version", version);
    run.add("weights", weights);
    run.add("adam", adam, state);
  };
  const auto save = [&](bool changes) {
    ferry::io::checkpoint run(path);
    add_to(run);
    run.add("halves", halves);
    run.save({.changes = changes});
  };
  // Everything that a checkpoint holds but the large array, which is compared in its place.
  const auto rest_of_state = [&] {
    std::vector<double> small;
    for (std::size_t i = 0; i < 200; ++i) small.push_back(strided(i / 10, i % 10));
    small.insert(small.end(), as_doubles.begin(), as_doubles.end());
    for (const auto& array : {ferry::make_ref(weights), state.field_ref(0), state.field_ref(1)}) {
      std::vector<float> elements(static_cast<std::size_t>(array.size()));
      ferry::copy(exec, array, elements).wait();
      small.insert(small.end(), elements.begin(), elements.end());
    }
    small.push_back(static_cast<double>(epoch));
    small.push_back(static_cast<double>(note.size()));
    small.push_back(static_cast<double>(std::mt19937(engine)()));
    small.insert(small.end(), list.begin(), list.end());
    small.push_back(options.rate);
    small.push_back(static_cast<double>(state.steps()));
    small.push_back(adam.lr);
    return small;
  };
  step();
  save(false);
  large[5] = 2.0f;  // a patch
  save(true);
  as_doubles.assign(40, 0.5);
  const std::vector<float> saved_large = large;
  const std::vector<double> saved = rest_of_state();

  std::vector<double> before;
  const std::vector<float> sevens(large.size(), 7.0f);
  const auto begin = [&] {
    large = sevens;
    memory.assign(memory.size(), 7.0f);
    as_doubles.assign(40, 7.0);
    epoch = 7;
    note = "short";
    engine.seed(7);
    list.assign(7, 7.0);
    options.rate = 7;
    adam.lr = 7;
    state.set_steps(7);
    step();
    before = rest_of_state();
  };
  const auto load = [&] {
    ferry::io::checkpoint run(path);
    add_to(run);
    run.add("halves", as_doubles);
    run.load({.convert = true});
  };
  CHECK(survive("load", begin, load, [&] { return equal(large, sevens) && rest_of_state() == before; }) > 50);
  CHECK(equal(large, saved_large));
  CHECK((rest_of_state() == saved));

  file_list files;
  const auto look = [&] {
    large[static_cast<std::size_t>(epoch++) * 1000 % large.size()] += 1.0f;
    files = files_in(path);
  };
  const auto holds = [&] {  // what an earlier save could not remove may be gone
    const auto left = files_in(path);
    return left.contains("manifest") && std::includes(files.begin(), files.end(), left.begin(), left.end());
  };
  CHECK(survive(
            "save", look, [&] { save(false); }, holds) > 50);
  CHECK(survive(
            "save of changes", look, [&] { save(true); }, holds) > 50);
  const std::vector<float> newest_large = large;
  const std::vector<double> newest = rest_of_state();
  begin();
  load();
  as_doubles.assign(40, 0.5);
  CHECK(equal(large, newest_large));
  CHECK((rest_of_state() == newest));
}

TEST_CASE("generations and named checkpoints stay when memory runs out", "[failing_heap][io]") {
  // In memory where there is such a file system: thousands of saves would wait for a disk.
  const environment_variable in_memory(
      "TMPDIR", std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::getenv("TMPDIR"));
  const temporary_folder folder;
  const std::string path = folder.path() + "/a-folder-whose-name-has-more-than-thirty-letters";
  std::int64_t turn = 0;
  const auto save = [&](const std::string& name) {
    ferry::io::checkpoint run(path, {.keep = 2});
    run.add("turn", turn);
    run.save({.name = name});
  };
  const auto turn_of = [&](const ferry::io::load_options& options) {
    std::int64_t loaded = -1;
    ferry::io::checkpoint run(path);
    run.add("turn", loaded);
    run.load(options);
    return loaded;
  };
  const auto oldest = [&] { return ferry::io::checkpoint(path).generations().front(); };
  std::int64_t older = 0;
  const auto begin = [&] {
    ++turn;
    save("");
    older = turn;
    ++turn;
    save("");
    save("best");
    ++turn;
  };
  const auto still = [&] {
    return turn_of({}) == older + 1 && turn_of({.generation = oldest()}) == older &&
           turn_of({.name = "best"}) == older + 1;
  };
  CHECK(survive(
            "save of a generation", begin, [&] { save(""); }, still) > 20);
  CHECK(survive(
            "named save", begin, [&] { save("best"); }, still) > 20);
}

TEST_CASE("looks at the machine leave no file open when memory runs out", "[failing_heap]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/profile";
  ferry::detail::write_text(path, "a text");
  const auto nothing = [] {};
  const auto always = [] { return true; };
  survive(
      "read_text", nothing,
      [&] {
        std::string why;
        bool missing = false;
        static_cast<void>(ferry::detail::read_text(path, why, missing));
      },
      always);
  survive(
      "write_text", nothing, [&] { ferry::detail::write_text(path, "a text"); },
      [&] { return files_in(folder.path()).size() == 1; });
  survive(
      "line_of", nothing, [] { static_cast<void>(ferry::host::line_of("/proc/version", "")); }, always);
  survive(
      "first_line", nothing, [] { static_cast<void>(ferry::host::numa::first_line("/proc/version")); },
      always);
}

}  // namespace ferry_test::failing_files_test
