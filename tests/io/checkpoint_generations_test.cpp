// SPDX-License-Identifier: Apache-2.0
#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>

#include "fuzz/manifest_case.hpp"
#include "io/io_kit.hpp"
#include "support/captured_stderr.hpp"
#include "support/folder.hpp"
#include "support/forked.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

/// Folders that hold several checkpoints.
namespace ferry_test::checkpoint_generations_test {

using numbers = std::vector<std::uint64_t>;
using names = std::vector<std::string>;

std::set<std::string> files_of(const std::string& folder) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path().filename());
  return files;
}

/// A run whose content is told by the number of its turn.
struct turns {
  std::int64_t turn = 0;
  std::vector<float> table = std::vector<float>(20000, 0.0F);

  turns() { go_to(0); }
  void go_to(std::int64_t next) {
    turn = next;
    // Few neighbouring elements differ from one turn to the next.
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] =
          static_cast<float>((next + static_cast<std::int64_t>(i / 400)) / 50 + static_cast<int>(i % 7));
  }
  void add_to(ferry::io::checkpoint& run) {
    run.add("turn", turn);
    run.add("table", table);
  }
  /// The turn of a checkpoint, whose content must be that of this turn.
  static std::int64_t loaded(const std::string& path, const ferry::io::load_options& options = {}) {
    turns now, expected;
    ferry::io::checkpoint run(path);
    now.add_to(run);
    now.go_to(-1);
    run.load(options);
    expected.go_to(now.turn);
    if (now.table != expected.table) throw std::runtime_error("the table is not that of the turn");
    return now.turn;
  }
};

TEST_CASE("exists tells a first run from a resumed one, and from a broken folder", "[io][checkpoint]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path);
  now.add_to(run);
  CHECK_FALSE(run.exists());
  CHECK(run.generations().empty());
  CHECK(run.names().empty());
  CHECK(said<ferry::not_found>([&] { run.load(); }) ==
        "ferry::io::checkpoint: " + path + ": there is no such folder, and no checkpoint");
  CHECK_FALSE(std::filesystem::exists(path));
  // A first save that was killed has left a data file.
  REQUIRE(::mkdir(path.c_str(), 0777) == 0);
  write_bytes(path + "/data-1", "ferrydat");
  CHECK_FALSE(run.exists());
  CHECK(has(said<ferry::not_found>([&] { run.load(); }), "it holds no complete checkpoint"));
  run.save();
  CHECK(run.exists());
  CHECK(turns::loaded(path) == 0);
  // The folder of the folder is missing, or is a file: the second is no first run.
  CHECK_FALSE(ferry::io::checkpoint(root.path() + "/a/b").exists());
  write_bytes(root.path() + "/file", "");
  CHECK_THROWS_AS(ferry::io::checkpoint(root.path() + "/file").exists(), ferry::io_error);
  CHECK_THROWS_AS(ferry::io::checkpoint(root.path() + "/file/run").exists(), ferry::io_error);
  CHECK_THROWS_AS(ferry::io::checkpoint(root.path() + "/file").generations(), ferry::io_error);
  // A manifest that is damaged or lacks its data exists: load() says what is wrong, and that is no absence.
  REQUIRE(::unlink((path + "/data-1").c_str()) == 0);
  CHECK(run.exists());
  bool is_absence = false;
  try {
    run.load();
  } catch (const ferry::not_found&) {
    is_absence = true;
  } catch (const ferry::io_error&) {
  }
  CHECK_FALSE(is_absence);
  // Other files that do not exist are found missing, too.
  CHECK_THROWS_AS(ferry::io::load_npy<float>(root.path() + "/none.npy"), ferry::not_found);
  CHECK_THROWS_AS(ferry::io::open_safetensors(root.path() + "/none.safetensors"), ferry::not_found);
}

TEST_CASE("a folder keeps the newest generations", "[io][checkpoint][generations]") {
  for (const bool changes : {false, true})
    for (const int keep : {1, 2, 3, 5}) {
      CAPTURE(changes, keep);
      const temporary_folder root;
      const std::string path = root.path() + "/run";
      turns now;
      ferry::io::checkpoint run(path, {.keep = keep});
      now.add_to(run);
      for (std::int64_t turn = 1; turn <= 8; ++turn) {
        now.go_to(turn);
        run.save({.changes = changes && turn > 1});
        numbers expected;
        for (std::int64_t i = std::max<std::int64_t>(1, turn - keep + 1); i <= turn; ++i)
          expected.push_back(static_cast<std::uint64_t>(i));
        REQUIRE(run.generations() == expected);
        for (const auto number : expected)
          REQUIRE(turns::loaded(path, {.generation = number}) == static_cast<std::int64_t>(number));
        REQUIRE(turns::loaded(path) == turn);
        REQUIRE(run.exists({.generation = expected.front()}));
        REQUIRE_FALSE(run.exists({.generation = expected.front() - 1 == 0 ? 99 : expected.front() - 1}));
      }
      if (!changes) CHECK(files_of(path).size() == static_cast<std::size_t>(2 * keep + 2));  // lock, digests
      if (keep == 1 && !changes)
        CHECK(files_of(path) == std::set<std::string>{"manifest", "lock", "data-8", "digests-8"});
    }
}

TEST_CASE("fewer generations may be kept later, and more", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  const auto save = [&](int keep) {
    ferry::io::checkpoint run(path, {.keep = keep});
    now.add_to(run);
    now.go_to(now.turn + 1);
    run.save();
    return run.generations();
  };
  CHECK(save(1) == numbers{1});
  CHECK(save(4) == numbers{1, 2});
  CHECK(save(4) == numbers{1, 2, 3});
  CHECK(save(4) == numbers{1, 2, 3, 4});
  CHECK(save(2) == numbers{4, 5});
  CHECK(save(1) == numbers{6});
  CHECK(files_of(path) == std::set<std::string>{"manifest", "lock", "data-6", "digests-6"});
  CHECK_THROWS_AS(ferry::io::checkpoint(path, {.keep = 0}), ferry::invalid_argument);
}

TEST_CASE("a generation that was loaded goes on as the newest one", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::tensor<float, ferry::pageable_space> weights("weights", 100, 3);
  const auto fill = [&](float value) { put(weights, std::vector<float>(300, value)); };
  ferry::io::checkpoint run(path, {.keep = 3});
  now.add_to(run);
  run.add("weights", weights);
  for (std::int64_t turn = 1; turn <= 3; ++turn) {
    now.go_to(turn);
    fill(static_cast<float>(turn));
    run.save({.changes = turn > 1});
  }
  run.load({.generation = 1});
  CHECK(now.turn == 1);
  CHECK(take(weights) == std::vector<float>(300, 1.0F));
  // The digests are those of the newest generation, which has other rows than what was loaded.
  run.save({.changes = true});
  CHECK(run.generations() == numbers{2, 3, 4});
  fill(9.0F);
  run.load();
  CHECK(now.turn == 1);
  CHECK(take(weights) == std::vector<float>(300, 1.0F));
  const std::string words = said<ferry::not_found>([&] { run.load({.generation = 1}); });
  CHECK(words ==
        "ferry::io::checkpoint: " + path + ": it holds no generation 1; its generations are: 2, 3, 4");
}

TEST_CASE("named checkpoints stay", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path, {.keep = 2});
  now.add_to(run);
  now.go_to(1);
  run.save("best");  // before any generation
  CHECK_FALSE(run.exists());
  CHECK(run.exists({.name = "best"}));
  CHECK_THROWS_AS(run.load(), ferry::not_found);
  CHECK(turns::loaded(path, {.name = "best"}) == 1);
  for (std::int64_t turn = 2; turn <= 9; ++turn) {
    now.go_to(turn);
    run.save({.changes = turn > 2});
    if (turn == 4) run.save({.changes = true, .name = "fourth-of.the_month"});
    if (turn == 5) run.save(std::string("best"));
    if (turn == 6) run.save_async(exec_space{}, {.name = "background"}).wait();
    CHECK(turns::loaded(path, {.name = "best"}) == (turn < 5 ? 1 : 5));
    CHECK(turns::loaded(path) == turn);
    CHECK(run.generations().size() == static_cast<std::size_t>(turn == 2 ? 1 : 2));
  }
  CHECK(run.names() == names{"background", "best", "fourth-of.the_month"});
  CHECK(turns::loaded(path, {.name = "fourth-of.the_month"}) == 4);
  CHECK(turns::loaded(path, {.name = "background"}) == 6);
  run.load({.name = "best"});
  CHECK(now.turn == 5);
  // A named checkpoint that somebody removes gives its data back with the next save.
  for (const auto& name : run.names()) REQUIRE(::unlink((path + "/named-" + name).c_str()) == 0);
  run.save();
  run.save();
  CHECK(files_of(path).size() == 6);
  CHECK(has(said<ferry::not_found>([&] { run.load({.name = "best"}); }),
            "it holds no checkpoint named 'best'; the named ones are: none"));
}

TEST_CASE("a named save keeps the digests of the newest generation", "[io][checkpoint][generations]") {
  const temporary_folder root;
  ferry::tensor<float, ferry::pageable_space> table("table", 2000, 64);
  put(table, std::vector<float>(2000 * 64, 1.0F));
  ferry::io::checkpoint run(root.path() + "/run", {.keep = 2});
  run.add("table", table);
  run.save();
  table(5, 3) = 2.0F;
  run.save({.changes = true, .name = "best"});
  table(6, 3) = 3.0F;
  run.save({.changes = true});
  auto expected = take(table);
  const auto read = [&](const ferry::io::load_options& options) {
    ferry::tensor<float, ferry::pageable_space> copy("copy", 2000, 64);
    ferry::io::checkpoint reading(root.path() + "/run");
    reading.add("table", copy);
    reading.load(options);
    return take(copy);
  };
  CHECK(read({}) == expected);
  expected[6 * 64 + 3] = 1.0F;
  CHECK(read({.name = "best"}) == expected);
  // Rows are shared with the generation before: no save of changes writes the table again.
  for (const auto& entry : std::filesystem::directory_iterator(root.path() + "/run"))
    if (entry.path().filename() == "data-2" || entry.path().filename() == "data-3")
      CHECK(entry.file_size() <= 4096 + 2 * (4096 + 4) + 64);
}

TEST_CASE("names that are no part of a file's name are refused", "[io][checkpoint][generations]") {
  const temporary_folder root;
  turns now;
  ferry::io::checkpoint run(root.path() + "/run");
  now.add_to(run);
  for (const std::string& name :
       {std::string("a/b"), std::string("../a"), std::string("a b"), std::string("x.part"),
        std::string("\xc3\xa4"), std::string("a\0b", 3), std::string(101, 'a')}) {
    CHECK(has(said<ferry::invalid_argument>([&] { run.save(name); }),
              "the name of a checkpoint has 1 to 100 letters"));
    CHECK_THROWS_AS(run.load({.name = name}), ferry::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(run.exists({.name = name})), ferry::invalid_argument);
    CHECK_THROWS_AS(run.save_async(exec_space{}, {.name = name}).wait(), ferry::invalid_argument);
  }
  // A name that a program has computed; nobody means a generation by it.
  CHECK(has(said<ferry::invalid_argument>([&] { run.save(std::string()); }),
            "the name of the checkpoint is empty"));
  CHECK_THROWS_AS(run.save(""), ferry::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(root.path() + "/run"));
  run.save(std::string(100, 'a'));
  run.save("..");
  CHECK(turns::loaded(root.path() + "/run", {.name = ".."}) == 0);
  CHECK(has(said<ferry::invalid_argument>([&] { run.load({.generation = 3, .name = "a"}); }),
            "generation 3 and the name 'a' are given"));
}

TEST_CASE("a disk that is full keeps all generations", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path, {.keep = 3});
  now.add_to(run);
  for (std::int64_t turn = 1; turn <= 3; ++turn) {
    now.go_to(turn);
    run.save();
  }
  run.save("best");
  const auto before = files_of(path);
  struct rlimit limit_before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit_before) == 0);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  const auto fails_below = [&](rlim_t bytes, const ferry::io::save_options& options) {
    rlimit limit = limit_before;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    now.go_to(99);
    const std::string words = said<ferry::io_error>([&] { run.save(options); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit_before) == 0);
    CHECK(has(words, "File too large"));
    CHECK(files_of(path) == before);
    for (std::uint64_t number = 1; number <= 3; ++number)
      CHECK(turns::loaded(path, {.generation = number}) == static_cast<std::int64_t>(number));
    CHECK(turns::loaded(path, {.name = "best"}) == 3);
  };
  fails_below(8000, {});
  fails_below(8000, {.name = "best"});
  std::signal(SIGXFSZ, signal_before);
}

TEST_CASE("a folder that is read only is loaded from and listed", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  {
    ferry::io::checkpoint run(path, {.keep = 2});
    now.add_to(run);
    run.save();
    now.go_to(1);
    run.save();
    run.save("best");
  }
  REQUIRE(::chmod(path.c_str(), 0555) == 0);
  REQUIRE(::unlink((path + "/lock").c_str()) == (::geteuid() == 0 ? 0 : -1));
  const ferry::io::checkpoint run(path);
  CHECK(run.exists());
  CHECK(run.generations() == numbers{1, 2});
  CHECK(run.names() == names{"best"});
  CHECK(turns::loaded(path, {.generation = 1}) == 0);
  CHECK(turns::loaded(path, {.name = "best"}) == 1);
  if (::geteuid() != 0) {
    ferry::io::checkpoint saving(path, {.keep = 2});
    now.add_to(saving);
    CHECK_THROWS_AS(saving.save(), ferry::io_error);
    CHECK(turns::loaded(path) == 1);
  }
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
}

TEST_CASE("older generations and named checkpoints are as private as the newest",
          "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path, {.keep = 2});
  now.add_to(run);
  run.save();
  REQUIRE(::chmod((path + "/manifest").c_str(), 0600) == 0);
  run.save();
  run.save("best");
  for (const char* name : {"manifest", "manifest-1", "named-best", "data-2", "data-3"}) {
    struct stat status {};
    CAPTURE(name);
    REQUIRE(::stat((path + "/" + name).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
  }
}

TEST_CASE("files of others in the folder stay, and of killed saves go", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path, {.keep = 2});
  now.add_to(run);
  run.save();
  for (const char* name : {"manifest.17-0.part", "manifest-1.17-0.part", "named-best.17-0.part", "data-9",
                           "digests-3.17-0.part"})
    write_bytes(path + "/" + name, "ferrydat");
  write_bytes(path + "/digests-3", "ferrydig");
  for (const char* name :
       {"notes.part", "manifest-mine", "manifest-0", "named-", "mydata-3", "data-", "digests-4", "digests-"})
    write_bytes(path + "/" + name, "mine");
  run.save();
  CHECK(files_of(path) == std::set<std::string>{"manifest", "manifest-1", "data-1", "data-2", "digests-2",
                                                "lock", "digests-4", "digests-", "notes.part",
                                                "manifest-mine", "manifest-0", "named-", "mydata-3",
                                                "data-"});
}

TEST_CASE("a file that is no manifest keeps no data, and one that can't be read its own",
          "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path);
  now.add_to(run);
  const auto save = [&](int times, const ferry::io::save_options& options = {}) {
    captured_stderr printed;
    for (int i = 0; i < times; ++i) {
      now.go_to(now.turn + 1);
      run.save(options);
    }
    return printed.text();
  };
  const auto data = [&] {
    std::set<std::string> files = files_of(path);
    std::erase_if(files, [](const std::string& name) { return !name.starts_with("data-"); });
    return files;
  };
  // Of the user: a text, a folder, a file with bytes in the place of a number, a link to nothing.
  save(1);
  write_bytes(path + "/named-notes.txt", "learning rate was 0.1 here\n");
  write_bytes(path + "/named-zeros", std::string(100, '\0'));
  REQUIRE(::mkdir((path + "/named-plots").c_str(), 0777) == 0);
  REQUIRE(::symlink("nothing", (path + "/named-link").c_str()) == 0);
  const std::string words = save(20);
  CHECK(data() == std::set<std::string>{"data-21"});
  for (const char* name : {"named-notes.txt", "named-zeros", "named-plots"})
    CHECK(count_of(words, path + "/" + name +
                              ": it is no checkpoint, though it has the name of one; it is skipped") == 1);
  CHECK(count_of(words, "\n") == 3);
  CHECK(run.names().empty());
  CHECK(bytes_of(path + "/named-notes.txt") == "learning rate was 0.1 here\n");
  save(1, {.name = "best"});  // data-22
  save(1);                    // data-23
  const std::string best = bytes_of(path + "/named-best");
  CHECK(run.names() == names{"best"});
  // Of a newer ferry, damaged anywhere, or cut: its data stay, which begin with data-22, and newer ones go.
  const auto damaged = [&](std::size_t place) {
    std::string bytes = best;
    bytes[place] = static_cast<char>(bytes[place] ^ 0x11);
    return bytes;
  };
  std::string newer = best;
  newer[8] = 3;
  newer.insert(40, "what nobody knows yet");
  seal_manifest(newer);
  std::vector<std::string> unreadable{newer, best.substr(0, best.size() - 1), best.substr(0, 40)};
  for (std::size_t place = 0; place < best.size(); place += place < 60 ? 1 : 29)
    unreadable.push_back(damaged(place));
  int heard = 0;
  for (const std::string& bytes : unreadable) {
    write_bytes(path + "/named-best", bytes);
    const std::string lines = save(2);
    CAPTURE(lines);
    CHECK(count_of(lines, "stay for it") <= 1);  // not again for the same reason
    heard += count_of(lines, "stay for it");
    REQUIRE(files_of(path).contains("data-22"));
    // If the number itself is damaged it may be a larger one, and all stay.
    const bool is_number = bytes.size() == best.size() && bytes.substr(16, 8) != best.substr(16, 8);
    if (!is_number)
      CHECK(data() == std::set<std::string>{"data-22", "data-" + std::to_string(run.generations().back())});
    if (bytes.starts_with("ferryckp")) CHECK(run.names() == names{"best"});
    CHECK(turns::loaded(path) == now.turn);
  }
  CHECK(heard > 20);
  write_bytes(path + "/named-best", best);
  CHECK(save(1).empty());
  CHECK(data() == std::set<std::string>{"data-22", "data-" + std::to_string(run.generations().back())});
  CHECK(turns::loaded(path, {.name = "best"}) == 22);
  // Too short to tell what it needs: everything stays, until it is gone.
  write_bytes(path + "/named-best", best.substr(0, 20));
  CHECK(count_of(save(2), "stay for it") == 1);
  CHECK(data().size() == 4);
  REQUIRE(::unlink((path + "/named-best").c_str()) == 0);
  CHECK(save(1).empty());
  CHECK(data().size() == 1);
}

TEST_CASE("a manifest that is a symbolic link is replaced", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run", second_path = root.path() + "/second";
  turns now, second;
  ferry::io::checkpoint run(path, {.keep = 3}), second_run(second_path);
  now.add_to(run);
  second.add_to(second_run);
  second.go_to(50);
  second_run.save();
  second_run.save("best");
  const auto before = files_of(second_path);
  for (const bool changes : {false, true})
    for (const char* name : {"manifest", "named-best", "manifest-1"}) {
      CAPTURE(changes, name);
      std::filesystem::remove_all(path);
      now.go_to(1);
      run.save();
      run.save("best");
      const std::string link = path + "/" + name;
      ::unlink(link.c_str());
      REQUIRE(::symlink((second_path + (name[0] == 'n' ? "/named-best" : "/manifest")).c_str(),
                        link.c_str()) == 0);
      now.go_to(2);
      try {
        run.save({.changes = changes});
      } catch (const ferry::io_error&) {  // its data are not in this folder
        CHECK((changes && name == std::string("manifest")));
        run.save();
      }
      run.save("best");
      CHECK_FALSE(std::filesystem::is_symlink(link));
      CHECK(turns::loaded(path) == 2);
      CHECK(turns::loaded(path, {.name = "best"}) == 2);
      CHECK(files_of(second_path) == before);
      CHECK(turns::loaded(second_path) == 50);
      CHECK(turns::loaded(second_path, {.name = "best"}) == 50);
      for (const auto number : run.generations()) CHECK_NOTHROW(turns::loaded(path, {.generation = number}));
    }
}

TEST_CASE("a save of changes writes everything if its manifest grew too long",
          "[io][checkpoint][generations][once]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  turns now;
  ferry::io::checkpoint run(path);
  now.add_to(run);
  run.save();
  ferry::detail::manifest says = ferry::detail::read_manifest(path);
  auto& chunk = says.entries[1].arrays[0].chunks[0];
  chunk.patches.assign(1600000, {chunk.piece, 1});
  ferry::detail::write_manifest(path, says);
  REQUIRE(std::filesystem::file_size(path + "/manifest") < ferry::detail::longest_manifest);
  now.go_to(1);
  run.save({.changes = true});
  CHECK(turns::loaded(path) == 1);
  CHECK(ferry::detail::read_manifest(path).files.size() == 1);
  now.go_to(2);
  run.save({.changes = true});
  CHECK(ferry::detail::read_manifest(path).files.size() == 2);
  // One that is too long is not written, and not read.
  chunk.patches.clear();
  says.entries[0].facts.push_back(
      {"note", ferry::detail::manifest_fact::text, std::string(ferry::detail::longest_manifest, 'x'), {}});
  CHECK(has(said<ferry::io_error>([&] { ferry::detail::write_manifest(path, says); }),
            "and the most are 67108864"));
  CHECK(turns::loaded(path) == 2);
  std::filesystem::resize_file(path + "/manifest", ferry::detail::longest_manifest + 1);
  CHECK(has(said<ferry::io_error>([&] { run.load(); }), "it has 67108865 bytes, too many for a manifest"));
}

TEST_CASE("a checkpoint of an older ferry becomes the oldest generation", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  std::filesystem::copy(golden("checkpoint_v2"), path);
  int number = 7;
  ferry::io::checkpoint run(path, {.keep = 2});
  run.add("number", number);
  const numbers before = run.generations();
  REQUIRE(before.size() == 1);
  run.save();
  REQUIRE(run.generations().size() == 2);
  CHECK(run.generations().front() == before.front());
  // Byte by byte what it was, with its data.
  CHECK(bytes_of(path + "/manifest-" + std::to_string(before.front())) ==
        bytes_of(golden("checkpoint_v2") + "/manifest"));
  for (const auto& file : std::filesystem::directory_iterator(golden("checkpoint_v2")))
    if (const std::string name = file.path().filename(); name.starts_with("data-"))
      CHECK(bytes_of(path + "/" + name) == bytes_of(file.path()));
  run.save();
  CHECK_FALSE(std::filesystem::exists(path + "/manifest-" + std::to_string(before.front())));
}

TEST_CASE("processes load all generations while another one saves", "[io][checkpoint][generations]") {
  const temporary_folder root;
  const std::string path = root.path() + "/run";
  const auto save = [&](turns& now, ferry::io::checkpoint& run) {
    now.go_to(now.turn + 1);
    run.save({.changes = now.turn % 3 != 0 && now.turn > 1});
    if (now.turn % 4 == 0) run.save("best");
  };
  {
    turns now;
    ferry::io::checkpoint run(path, {.keep = 3});
    now.add_to(run);
    for (int i = 0; i < 4; ++i) save(now, run);
  }
  const auto read = [&](forked&) {
    std::int64_t last = 0;
    const ferry::io::checkpoint list(path);
    for (int turn = 0; turn < 100; ++turn) {
      const auto generations = list.generations();
      if (generations.size() < 3 || generations.size() > 5) return false;
      const std::int64_t newest = turns::loaded(path);
      if (newest < last) return false;
      last = newest;
      static_cast<void>(turns::loaded(path, {.name = "best"}));
      try {  // it may have gone meanwhile
        const auto number = generations[static_cast<std::size_t>(turn) % generations.size()];
        static_cast<void>(turns::loaded(path, {.generation = number}));
      } catch (const ferry::not_found&) {
      }
    }
    return true;
  };
  forked first(read), second(read);
  forked saving([&](forked&) {
    turns now;
    ferry::io::checkpoint run(path, {.keep = 3});
    now.add_to(run);
    run.load();
    for (int i = 0; i < 60; ++i) save(now, run);
    return true;
  });
  CHECK(first.ended_well());
  CHECK(second.ended_well());
  CHECK(saving.ended_well());
}

}  // namespace ferry_test::checkpoint_generations_test
