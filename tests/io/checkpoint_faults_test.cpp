// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <boost/crc.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>

/// Checkpoints that are damaged, and places that take none.
namespace ferry_test::checkpoint_faults_test {

using ferry::detail::file;

std::string read_file(const std::string& path) {
  const auto manifest_file = file::open_to_read("test", path);
  std::string bytes(manifest_file.size(), '\0');
  manifest_file.read_at(bytes.data(), bytes.size(), 0);
  return bytes;
}
void write_file(const std::string& path, const std::string& bytes) {
  file target("test", path);
  REQUIRE(target.open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666));
  target.write_at(bytes.data(), bytes.size(), 0);
}

constexpr std::size_t rows = 4000;  // more than one unit of changes

/// A table with a value of its own, which a failed load must leave.
struct target {
  ferry::tensor<float, ferry::pageable_space> table{"mine", rows, 6};
  target() { put(table, std::vector<float>(6 * rows, -3.0f)); }
  bool is_untouched() const { return take(table) == std::vector<float>(6 * rows, -3.0f); }
  void refuses(const std::string& folder, const std::string& sentence) {
    ferry::io::checkpoint run(folder);
    run.add("table", table);
    CHECK_THROWS_MATCHES(run.load(), ferry::io_error, MessageMatches(ContainsSubstring(sentence)));
    CHECK(is_untouched());
  }
};

/// A saved table of ones with a patch: data files 1 and 2.
std::string saved(const temporary_folder& folder, const char* name) {
  ferry::tensor<float, ferry::pageable_space> table("table", rows, 6);
  put(table, std::vector<float>(6 * rows, 1.0f));
  ferry::io::checkpoint run(folder.path() + "/" + name);
  run.add("table", table);
  run.save();
  table(7, 3) = 2.0f;
  run.save({.changes = true});
  return run.path();
}

TEST_CASE("checksums are those of Boost.CRC", "[io][checkpoint]") {
  auto random = generator(501);
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<unsigned char> bytes(random() % 300);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> sum;
    sum.process_bytes(bytes.data(), bytes.size());
    CHECK(ferry::detail::crc32c(bytes.data(), bytes.size()) == sum.checksum());
    const std::size_t part = bytes.size() / 3;
    CHECK(ferry::detail::crc32c(bytes.data() + part, bytes.size() - part,
                                ferry::detail::crc32c(bytes.data(), part)) == sum.checksum());
  }
  CHECK(ferry::detail::crc32c("123456789", 9) == 0xe3069283u);
}

TEST_CASE("a damaged checkpoint is refused and changes nothing", "[io][checkpoint]") {
  const temporary_folder root;
  target mine;
  const std::string folder = saved(root, "run");
  const std::string manifest = read_file(folder + "/manifest");
  const std::string data = read_file(folder + "/data-1");
  const std::string patch = read_file(folder + "/data-2");

  // Any changed byte and any shorter manifest.
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    std::string changed = manifest;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    write_file(folder + "/manifest", changed);
    ferry::io::checkpoint run(folder);
    run.add("table", mine.table);
    CHECK_THROWS_AS(run.load(), ferry::io_error);
    write_file(folder + "/manifest", manifest.substr(0, i));
    CHECK_THROWS_AS(run.load(), ferry::io_error);
  }
  CHECK(mine.is_untouched());
  write_file(folder + "/manifest", manifest + "x");
  mine.refuses(folder, "its body should have");
  std::string newer = manifest;
  newer[8] = 3;
  write_file(folder + "/manifest", newer);
  mine.refuses(folder, "it has format version 3, and this ferry reads version 2: a newer ferry wrote it");
  write_file(folder + "/manifest", manifest);

  for (const std::size_t place :
       {std::size_t{0}, std::size_t{9}, std::size_t{100}, std::size_t{4096}, data.size() - 1}) {
    std::string changed = data;
    changed[place] = static_cast<char>(changed[place] ^ 16);
    write_file(folder + "/data-1", changed);
    mine.refuses(folder, place < 4096 ? "its header is not that of data file 1"
                                      : "entry 'table' is damaged: the checksum of 96000 bytes");
  }
  write_file(folder + "/data-1", data.substr(0, data.size() - 1));
  mine.refuses(folder, "/data-1: it has " + std::to_string(data.size() - 1) +
                           " bytes, and the manifest says " + std::to_string(data.size()));
  write_file(folder + "/data-1", data);
  std::string changed = patch;
  changed[4096] = 1;
  write_file(folder + "/data-2", changed);
  mine.refuses(folder, "entry 'table' is damaged");
  REQUIRE(::rename((folder + "/data-2").c_str(), (folder + "/elsewhere").c_str()) == 0);
  mine.refuses(folder, "/data-2: open: No such file");
  REQUIRE(::symlink("elsewhere", (folder + "/data-2").c_str()) == 0);
  mine.refuses(folder, "/data-2: it is a symbolic link");
  ::unlink((folder + "/data-2").c_str());
  REQUIRE(::mkfifo((folder + "/data-2").c_str(), 0666) == 0);
  mine.refuses(folder, "/data-2: it is no regular file");
  ::unlink((folder + "/data-2").c_str());
  write_file(folder + "/data-2", patch);

  ferry::io::checkpoint run(folder);
  run.add("table", mine.table);
  run.load();
  CHECK(mine.table(7, 3) == 2.0f);
  CHECK(mine.table(7, 4) == 1.0f);
}

TEST_CASE("a save of everything repairs what is damaged, a save of changes leaves it to the load",
          "[io][checkpoint]") {
  const temporary_folder root;
  target mine;
  const std::string folder = saved(root, "run");
  std::string data = read_file(folder + "/data-1");
  data[5000] = static_cast<char>(data[5000] ^ 1);
  write_file(folder + "/data-1", data);
  mine.refuses(folder, "is damaged");
  ferry::io::checkpoint run(folder);
  ferry::tensor<float, ferry::pageable_space> table("table", rows, 6);
  put(table, std::vector<float>(6 * rows, 1.0f));
  table(7, 3) = 2.0f;
  run.add("table", table);
  run.save({.changes = true});
  mine.refuses(folder, "is damaged");
  run.save();
  put(table, std::vector<float>(6 * rows, 0.0f));
  run.load();
  CHECK(table(7, 3) == 2.0f);
  CHECK(table(8, 3) == 1.0f);
}

TEST_CASE("places that take no checkpoint are refused", "[io][checkpoint]") {
  const temporary_folder folder;
  float number = 1;
  const auto refuses = [&](const std::string& path, const std::string& sentence) {
    ferry::io::checkpoint run(path);
    run.add("number", number);
    CHECK_THROWS_MATCHES(run.save(), ferry::io_error, MessageMatches(ContainsSubstring(sentence)));
  };
  write_file(folder.path() + "/plain", "");
  refuses(folder.path() + "/plain", "it is a file, and a checkpoint is a folder");
  refuses(folder.path() + "/missing/run", "make the folder: No such file or directory");
  refuses("/proc/ferry", "make the folder");
  if (::geteuid() != 0) {  // the superuser may write everywhere
    REQUIRE(::mkdir((folder.path() + "/fixed").c_str(), 0555) == 0);
    refuses(folder.path() + "/fixed", "Permission denied");
  }
  // A trailing slash and a link to a folder are fine.
  REQUIRE(::mkdir((folder.path() + "/real").c_str(), 0777) == 0);
  REQUIRE(::symlink("real", (folder.path() + "/link").c_str()) == 0);
  ferry::io::checkpoint run(folder.path() + "/link/");
  run.add("number", number);
  run.save();
  number = 2;
  run.load();
  CHECK(number == 1);
}

}  // namespace ferry_test::checkpoint_faults_test
