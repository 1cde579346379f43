// SPDX-License-Identifier: Apache-2.0
#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/memory/detail/file.hpp>

#include "io_kit.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace ferry_test::failures_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

/// Limits the size of files that the process writes: to a write the same as a full disk. The signal of such writes, which would
/// end the process, stays as it is.
class size_limit {
 public:
  explicit size_limit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit now{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~size_limit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  size_limit(const size_limit&) = delete;
  size_limit& operator=(const size_limit&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("without room for the new file the old one survives", "[io][failures]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/w.npy";
  const std::string second_path = folder.path() + "/w.safetensors";
  const std::vector<float> small(10, 1.0f);
  const std::vector<float> large(100000, 2.0f);
  ferry::io::save_npy(path, small);
  ferry::io::save_safetensors(second_path, {{"w", small}});
  const std::string before = bytes_of(path);
  const std::string before_other = bytes_of(second_path);
  {
    const size_limit limit(4096);
    CHECK_THROWS_MATCHES(
        ferry::io::save_npy(path, large), ferry::io_error,
        MessageMatches(ContainsSubstring("save_npy: " + path) && ContainsSubstring("File too large")));
    CHECK_THROWS_AS(ferry::io::save_safetensors(second_path, {{"w", large}}), ferry::io_error);
    // The write fails if nothing was reserved.
    ferry::detail::atomic_file target("save_npy", path);
    CHECK_THROWS_MATCHES(ferry::detail::write_rows<false>(ferry::make_ref(large), target.content(), 0),
                         ferry::io_error,
                         MessageMatches(ContainsSubstring("write at byte 4096: File too large")));
  }
  CHECK(bytes_of(path) == before);
  CHECK(bytes_of(second_path) == before_other);
  CHECK(entries_of(folder.path()) == 2);
  // Limits at, before and after each end of a file: the file fits or is refused.
  for (const rlim_t bytes :
       {rlim_t{0}, rlim_t{1}, rlim_t{127}, rlim_t{128}, rlim_t{167}, rlim_t{168}, rlim_t{169}}) {
    CAPTURE(bytes);
    const std::vector<float> ten(10, 3.0f);
    const size_limit limit(bytes);
    if (bytes >= 128 + 40)
      CHECK_NOTHROW(ferry::io::save_npy(path, ten));
    else
      CHECK_THROWS_AS(ferry::io::save_npy(path, ten), ferry::io_error);
  }
  CHECK(entries_of(folder.path()) == 2);
  // A checkpoint, whose data file ends within its header, after it, and within the table.
  const std::string run_path = folder.path() + "/run";
  std::vector<float> table(2000, 1.0f);
  ferry::io::checkpoint run(run_path);
  run.add("table", table);
  run.save();
  const int files = entries_of(run_path);
  for (const rlim_t bytes : {rlim_t{100}, rlim_t{4096}, rlim_t{5000}}) {
    table.assign(2000, 2.0f);
    const size_limit limit(bytes);
    CHECK_THROWS_MATCHES(run.save(), ferry::io_error, MessageMatches(ContainsSubstring("File too large")));
    CHECK_THROWS_AS(run.save_async(exec_space{}).wait(), ferry::io_error);
    CHECK(entries_of(run_path) == files);
    run.load();
    CHECK(table == std::vector<float>(2000, 1.0f));
  }
}

TEST_CASE("an exception between write and commit leaves the old file", "[io][failures]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/w";
  write_bytes(path, "old");
  try {
    ferry::detail::atomic_file target("test", path);
    target.content().write_at("new content", 11, 0);
    CHECK(entries_of(folder.path()) == 2);
    throw std::runtime_error("on the way");
  } catch (const std::runtime_error&) {
  }
  CHECK(bytes_of(path) == "old");
  CHECK(entries_of(folder.path()) == 1);
  {
    ferry::detail::atomic_file single("test", path);
    ferry::detail::atomic_file two("test", path);
    single.content().write_at("1", 1, 0);
    two.content().write_at("22", 2, 0);
    single.commit();
    CHECK(bytes_of(path) == "1");
    two.commit();
    CHECK(bytes_of(path) == "22");
  }
  CHECK(entries_of(folder.path()) == 1);
}

TEST_CASE("symbolic links are followed and stay", "[io][failures]") {
  const temporary_folder folder;
  const std::string real = folder.path() + "/real.npy";
  const std::string link = folder.path() + "/link.npy";
  REQUIRE(::mkdir((folder.path() + "/sub").c_str(), 0777) == 0);
  REQUIRE(::symlink("sub/../second.npy", link.c_str()) == 0);
  REQUIRE(::symlink("real.npy", (folder.path() + "/second.npy").c_str()) == 0);
  ferry::io::save_npy(link, std::vector<float>{1, 2, 3});  // to a file that does not exist yet
  REQUIRE(::chmod(real.c_str(), 0640) == 0);
  ferry::io::save_npy(link, std::vector<float>{4, 5, 6});
  struct stat status {};
  REQUIRE(::lstat(link.c_str(), &status) == 0);
  CHECK(S_ISLNK(status.st_mode));
  REQUIRE(::lstat(real.c_str(), &status) == 0);
  CHECK(S_ISREG(status.st_mode));
  CHECK((status.st_mode & 0777) == 0640);
  CHECK(ferry::io::load_npy<float>(link)(2) == 6.0f);
  CHECK(entries_of(folder.path()) == 4);

  const std::string loop = folder.path() + "/loop.npy";
  REQUIRE(::symlink("loop.npy", loop.c_str()) == 0);
  CHECK_THROWS_MATCHES(ferry::io::save_npy(loop, std::vector<float>(3)), ferry::io_error,
                       MessageMatches(ContainsSubstring(loop)));
  CHECK_THROWS_AS(ferry::io::load_npy<float>(loop), ferry::io_error);
}

TEST_CASE("places where no file can be written", "[io][failures]") {
  const temporary_folder folder;
  const std::vector<float> values(3);
  CHECK_THROWS_MATCHES(ferry::io::save_npy(folder.path() + "/none/w.npy", values), ferry::io_error,
                       MessageMatches(ContainsSubstring("none/w.npy") && ContainsSubstring("No such file")));
  CHECK_THROWS_MATCHES(ferry::io::save_npy(folder.path(), values), ferry::io_error,
                       MessageMatches(ContainsSubstring("folder")));
  CHECK_THROWS_AS(ferry::io::save_npy(folder.path() + "/", values), ferry::io_error);
  CHECK_THROWS_AS(ferry::io::save_npy("", values), ferry::io_error);
  CHECK_THROWS_MATCHES(ferry::io::save_npy("/dev/null", values), ferry::io_error,
                       MessageMatches(ContainsSubstring("no regular file")));
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
  CHECK_THROWS_AS(ferry::io::save_npy(pipe, values), ferry::io_error);
  CHECK_THROWS_AS(ferry::io::load_npy<float>(pipe), ferry::io_error);
  CHECK(entries_of(folder.path()) == 1);
  if (::geteuid() != 0) {  // root may write everywhere
    const std::string locked = folder.path() + "/locked";
    REQUIRE(::mkdir(locked.c_str(), 0777) == 0);
    ferry::io::save_npy(locked + "/w.npy", values);
    REQUIRE(::chmod(locked.c_str(), 0555) == 0);
    CHECK_THROWS_MATCHES(ferry::io::save_npy(locked + "/w.npy", values), ferry::io_error,
                         MessageMatches(ContainsSubstring("Permission denied")));
    CHECK(ferry::io::load_npy<float>(locked + "/w.npy").rows() == 3);
    REQUIRE(::chmod(locked.c_str(), 0777) == 0);
  }
  const std::string name(255, 'n');
  ferry::io::save_npy(folder.path() + "/" + name, values);
  CHECK(ferry::io::load_npy<float>(folder.path() + "/" + name).rows() == 3);
}

TEST_CASE("a save keeps the owner and the mode of the file", "[io][failures]") {
  const temporary_folder folder;
  const std::string npy = folder.path() + "/w.npy", run = folder.path() + "/run";
  std::vector<float> values(3);
  struct stat status {};
  const auto look = [&](const std::string& path) {
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777u;
  };
  const auto save_all = [&] {
    ferry::io::save_npy(npy, values);
    ferry::io::checkpoint target(run);
    target.add("values", values);
    target.save();
  };
  const auto data = [&] {
    return ferry::detail::data_path(run, ferry::detail::read_manifest(run).files.back().number);
  };
  const mode_t mask = ::umask(0027);
  save_all();
  CHECK(look(npy) == 0640);
  CHECK(look(run + "/manifest") == 0640);
  CHECK(look(data()) == 0640);
  for (const unsigned mode : {0600u, 0444u, 0666u, 0751u}) {
    REQUIRE(::chmod(npy.c_str(), mode) == 0);
    REQUIRE(::chmod((run + "/manifest").c_str(), mode) == 0);
    save_all();
    CHECK(look(npy) == mode);
    CHECK(look(run + "/manifest") == mode);
    CHECK(look(data()) == mode);
  }
  ::umask(mask);
  if (::geteuid() != 0) return;  // only root gives files away
  REQUIRE(::chown(npy.c_str(), 12345, 54321) == 0);
  REQUIRE(::chown((run + "/manifest").c_str(), 12345, 54321) == 0);
  REQUIRE(::chmod(npy.c_str(), 06755) == 0);
  save_all();
  for (const std::string& path : {npy, run + "/manifest", data()}) {
    look(path);
    CHECK(status.st_uid == 12345);
    CHECK(status.st_gid == 54321);
  }
  CHECK(look(npy) == 06755);
}

TEST_CASE("a file that can't be given away is open to nobody else", "[io][failures]") {
  if (::geteuid() != 0) return;  // only root may become another user
  const temporary_folder folder;
  const std::string path = folder.path() + "/w";
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  // Owner, group and mode of the old file; the mode of the new one, which user 1000 of group 1000 makes.
  struct given {
    uid_t owner;
    gid_t group;
    unsigned mode, expected;
  };
  for (const given& entry : {given{0, 0, 06770, 0700}, given{0, 0, 0664, 0644}, given{1000, 0, 04754, 04744},
                             given{0, 1000, 02660, 02660}, given{1000, 1000, 0600, 0600}}) {
    struct stat old {};
    old.st_uid = entry.owner;
    old.st_gid = entry.group;
    old.st_mode = entry.mode;
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setgid(1000) != 0 || ::setuid(1000) != 0) ::_exit(1);
      const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
      if (descriptor < 0) ::_exit(2);
      ferry::detail::take_rights(descriptor, old);
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777u) == entry.expected);
    ::unlink(path.c_str());
  }
}

TEST_CASE("paths with a NUL inside are refused", "[io][failures]") {
  const temporary_folder folder;
  const std::string cut = folder.path() + "/a";
  const std::string path = cut + std::string("\0secret", 7);
  std::vector<float> values(3);
  const auto refuses = [&](const auto& call) {
    CHECK_THROWS_MATCHES(
        call(), ferry::invalid_argument,
        MessageMatches(ContainsSubstring(cut + "\\0secret: byte " + std::to_string(cut.size()) +
                                         " of the path is a NUL")));
  };
  for (const bool exists : {false, true}) {
    if (exists) ferry::io::save_npy(cut, values);
    refuses([&] { ferry::io::save_npy(path, values); });
    refuses([&] { ferry::io::load_npy(path, values); });
    refuses([&] { static_cast<void>(ferry::io::load_npy<float>(path)); });
    refuses([&] { static_cast<void>(ferry::io::map_npy<float>(path)); });
    refuses([&] { ferry::io::save_safetensors(path, {{"w", values}}); });
    refuses([&] { static_cast<void>(ferry::io::open_safetensors(path)); });
    refuses([&] { ferry::io::checkpoint run(path); });
    CHECK(entries_of(folder.path()) == (exists ? 1 : 0));
  }
}

TEST_CASE("several threads save and load at once", "[io][failures]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/w.npy";
  ferry::io::save_npy(path, std::vector<float>(1000, 0.0f));
  std::vector<std::thread> threads;
  std::vector<int> broken(4);
  for (std::size_t who = 0; who < 4; ++who)
    threads.emplace_back([&, who] {
      for (int times = 0; times < 20; ++times) {
        ferry::io::save_npy(path, std::vector<float>(1000 + who, static_cast<float>(who)));
        const auto table = ferry::io::load_npy<float>(path);
        for (std::size_t i = 1; i < table.rows(); ++i) broken[who] += table(i) == table(0) ? 0 : 1;
        broken[who] += table.rows() == 1000 + static_cast<std::size_t>(table(0)) ? 0 : 1;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(broken == std::vector<int>(4));
  CHECK(entries_of(folder.path()) == 1);
}

}  // namespace ferry_test::failures_test
