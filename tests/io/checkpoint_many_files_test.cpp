// SPDX-License-Identifier: Apache-2.0
#include "../../src/io/unit_digests.hpp"
#include "io/checkpoint_kit.hpp"

#include <ferry/io/detail/checkpoint_folder.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

/// Checkpoints that many saves have written to, and processes that may open few files.
namespace ferry_test::checkpoint_many_files_test {

using ferry::detail::most_data_files;
using ferry::detail::read_manifest;

/// Leaves the process room for few more descriptors.
class descriptor_limit {
 public:
  explicit descriptor_limit(rlim_t more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlim_t limit = 0;  // the limit is one of numbers, and a device's runtime leaves gaps between those in use
    for (; more != 0; ++limit)
      if (::fcntl(static_cast<int>(limit), F_GETFD) == -1) --more;
    const rlimit now{limit, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  ~descriptor_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  descriptor_limit(const descriptor_limit&) = delete;
  descriptor_limit& operator=(const descriptor_limit&) = delete;

 private:
  rlimit before_{};
};

std::size_t data_files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += entry.path().filename().string().rfind("data-", 0) == 0 ? 1 : 0;
  return count;
}
std::uintmax_t bytes_in(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) bytes += entry.file_size();
  return bytes;
}
std::size_t patches_in(const ferry::detail::manifest& saved) {
  std::size_t most = 0;
  for (const auto& entry : saved.entries)
    for (const auto& array : entry.arrays)
      for (const auto& chunk : array.chunks) most = std::max(most, chunk.patches.size());
  return most;
}

/// A table, and its oracle in a vector.
constexpr std::size_t rows = 60000, width = 32;

/// A checkpoint of `count` arrays, the rows of a table, each in a file of its own.
std::vector<float> write_files(const std::string& folder, std::size_t count) {
  using namespace ferry::detail;
  auto random = generator(78);
  const auto content = values<float>(random, count * 8);
  make_folder(folder);
  manifest saved;
  std::vector<array_digests> digests;
  saved.number = count;
  for (std::size_t i = 0; i < count; ++i) {
    manifest_entry& entry = saved.entries.emplace_back();
    entry.name = std::to_string(i);
    entry.kind = "array";
    manifest_array& array = entry.arrays.emplace_back();
    array.dtype = "f32";
    array.element_bytes = 4;
    array.extents = {1, 8};
    array = array_in_memory(std::move(array), 32, {}).schema;
    piece_file target(folder, i + 1);
    const auto* const bytes = reinterpret_cast<const std::byte*>(content.data() + i * 8);
    digests.push_back({digest_kind::xxh3, {digest_of(bytes, 32)}});
    auto piece = target.append(bytes, 32);
    piece.file = static_cast<std::uint32_t>(i);
    array.chunks.push_back({piece, {}});
    saved.files.push_back({i + 1, target.size()});
    target.finish();
    target.keep();
  }
  write_digests(folder, saved, digests);
  write_manifest(folder, saved);
  return content;
}
void add_rows(ferry::io::checkpoint& entries, ferry::tensor<float, ferry::pageable_space>& table) {
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto row = table.rows_between(i, i + 1);
    entries.add(std::to_string(i), row);
  }
}

TEST_CASE("any number of saves of changes leaves few files", "[io][checkpoint]") {
  const temporary_folder root;
  const std::string folder = root.path() + "/run";
  const bool in_background = GENERATE(false, true);
  const exec_space exec;
  auto random = generator(77);
  auto expected = values<float>(random, rows * width);
  ferry::tensor<float, ferry::pageable_space> table("table", rows, width);
  std::vector<float> still = values<float>(random, 300);  // never changes
  put(table, expected);
  ferry::io::checkpoint run(folder);
  run.add("table", table);
  run.add("still", still);
  run.save();
  std::uintmax_t written = 0;
  for (int save = 1; save <= 300; ++save) {
    const auto row = static_cast<std::int64_t>(random() % rows);
    const auto fresh = values<float>(random, width);
    std::copy(fresh.begin(), fresh.end(), expected.begin() + row * static_cast<std::int64_t>(width));
    const auto batch = make<ferry::pageable_space>("batch", 1, width, fresh);
    ferry::scatter(exec, table, std::vector<std::int64_t>{row}, batch).wait();
    const descriptor_limit limit(most_data_files + 16);
    if (in_background)
      run.save_async(exec, {.changes = true}).wait();
    else
      run.save({.changes = true});
    REQUIRE(data_files_in(folder) <= most_data_files);
    const auto now = read_manifest(folder);
    REQUIRE(now.files.size() == data_files_in(folder));
    written += now.files.back().bytes;
    if (save % 50 != 0 && save != 65) continue;
    ferry::tensor<float, ferry::pageable_space> back("back", rows, width);
    std::vector<float> second(still.size());
    ferry::io::checkpoint reopened(folder);
    reopened.add("table", back);
    reopened.add("still", second);
    reopened.load();
    REQUIRE((take(back) == expected));
    REQUIRE((second == still));
  }
  // A byte is moved once in about 30 saves, the table never; patches of a chunk are joined.
  CHECK(written < 300 * (4096 + 4 * (4096 + 4)));
  CHECK(bytes_in(folder) < 2 * rows * width * 4);
  CHECK(patches_in(read_manifest(folder)) <= most_data_files);
}

TEST_CASE("a checkpoint of more files than a process may open loads, and changes are saved",
          "[io][checkpoint]") {
  const temporary_folder root;
  const std::string folder = root.path() + "/run";
  constexpr std::size_t count = 5 * most_data_files;
  auto content = write_files(folder, count);
  const descriptor_limit limit(most_data_files + 16);
  ferry::tensor<float, ferry::pageable_space> table("table", count, 8);
  ferry::io::checkpoint run(folder);
  add_rows(run, table);
  run.load();
  CHECK((take(table) == content));
  {
    const descriptor_limit less(most_data_files / 4);  // the process itself has opened the others
    put(table, std::vector<float>(content.size()));
    run.load();
    CHECK((take(table) == content));
  }
  content[8 * 17 + 3] = 1e9f;
  put(table, content);
  run.save({.changes = true});
  CHECK(data_files_in(folder) <= most_data_files);
  put(table, std::vector<float>(content.size()));
  run.load();
  CHECK((take(table) == content));
}

TEST_CASE("what is damaged stays for the load to name it when files are merged", "[io][checkpoint]") {
  const temporary_folder root;
  const std::string folder = root.path() + "/run";
  constexpr std::size_t count = 3 * most_data_files;
  const auto content = write_files(folder, count);
  ferry::tensor<float, ferry::pageable_space> table("table", count, 8);
  ferry::io::checkpoint run(folder);
  add_rows(run, table);
  run.load();
  const auto path = ferry::detail::data_path(folder, 5);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  ferry::detail::file damaged("test", path);
  REQUIRE(damaged.open(path.c_str(), O_RDWR));
  damaged.write_at("?", 1, 4096);
  run.save({.changes = true});
  CHECK(data_files_in(folder) <= most_data_files);
  CHECK(std::filesystem::exists(path));
  ferry::tensor<float, ferry::pageable_space> back("back", count, 8);
  ferry::io::checkpoint second(folder);
  add_rows(second, back);
  CHECK_THROWS_AS(second.load(), ferry::io_error);
  // A save of everything repairs it.
  second = ferry::io::checkpoint(folder);
  add_rows(second, table);
  second.save();
  put(table, std::vector<float>(content.size()));
  second.load();
  CHECK((take(table) == content));
}

TEST_CASE("files that a reader can't keep open stay until it has read them", "[io][checkpoint]") {
  const temporary_folder root;
  const std::string folder = root.path() + "/run";
  constexpr std::size_t count = 4 * most_data_files;
  const auto content = write_files(folder, count);
  std::vector<float> saved(8 * count, 2.0f);
  {
    const ferry::detail::manifest says = read_manifest(folder);
    const ferry::detail::checkpoint_files reader(folder, says);
    ferry::io::checkpoint run(folder);
    ferry::tensor<float, ferry::pageable_space> table("table", count, 8);
    put(table, saved);
    run.add("table", table);
    run.save();  // another process, say
    CHECK(read_manifest(folder).files.size() == 1);
    std::vector<float> results(8);
    std::vector<std::byte> scratch;
    for (std::size_t i = 0; i < count; ++i) {
      reader.read_chunk(says.entries[i].arrays[0], 0, reinterpret_cast<std::byte*>(results.data()), scratch,
                        "x");
      REQUIRE(
          std::equal(results.begin(), results.end(), content.begin() + static_cast<std::ptrdiff_t>(8 * i)));
    }
    CHECK(data_files_in(folder) == count + 1);
  }
  ferry::io::checkpoint run(folder);
  run.add("saved", saved);
  run.save();
  CHECK(data_files_in(folder) == 1);
}

TEST_CASE("several threads read more files than may be open", "[io][checkpoint]") {
  const temporary_folder root;
  const std::string folder = root.path() + "/run";
  constexpr std::size_t count = 4 * most_data_files;
  const auto content = write_files(folder, count);
  const ferry::detail::manifest says = read_manifest(folder);
  const ferry::detail::checkpoint_files reader(folder, says);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      auto random = generator(500 + t);
      std::vector<float> results(8);
      std::vector<std::byte> scratch;
      for (int times = 0; times < 2000; ++times) {
        const std::size_t i = random() % count;
        reader.read_chunk(says.entries[i].arrays[0], 0, reinterpret_cast<std::byte*>(results.data()), scratch,
                          "x");
        if (!std::equal(results.begin(), results.end(), content.begin() + static_cast<std::ptrdiff_t>(8 * i)))
          ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace ferry_test::checkpoint_many_files_test
