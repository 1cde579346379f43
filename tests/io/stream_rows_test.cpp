// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/memory/detail/file.hpp>

#include "support/folder.hpp"
#include "support/test.hpp"

namespace ferry_test::stream_rows_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

std::vector<float> content_of(const std::string& path, std::uint64_t offset, std::size_t count) {
  const auto rows_file = ferry::detail::file::open_to_read("test", path);
  REQUIRE(rows_file.size() == offset + count * sizeof(float));
  std::vector<float> results(count);
  rows_file.read_at(results.data(), count * sizeof(float), offset);
  return results;
}

/// Reads the elements of an array from byte `offset` of a file.
template <bool Strided, class T, class Space>
void read_rows(const ferry::detail::file& source, std::uint64_t offset,
               const ferry::detail::array_ref<T, Space>& array) {
  const auto read = [&](T* elements, std::int64_t first, std::int64_t count) {
    source.read_at(elements, static_cast<std::size_t>(count) * sizeof(T),
                   offset + static_cast<std::uint64_t>(first) * sizeof(T));
  };
  ferry::detail::stream<Strided>(ferry::detail::default_exec_for<Space>(), array, read);
}

TEMPLATE_TEST_CASE("rows travel to a file and back", "[io]", ferry::device_space, ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/rows";
  // One element, a few, and more than two buffers of a page-locked stream.
  for (const std::size_t rows : {std::size_t{1}, std::size_t{77}, (std::size_t{70} << 20) / 4 / 33}) {
    const auto values_there = values<float>(random, rows * 33);
    const auto table = make<TestType>("table", rows, 33, values_there);
    {
      ferry::detail::atomic_file target("test", path);
      target.content().reserve(5 + values_there.size() * sizeof(float));
      ferry::detail::write_rows<false>(ferry::make_ref(table), target.content(), 5);
      target.commit();
    }
    CHECK(entries_of(folder.path()) == 1);
    CHECK((content_of(path, 5, rows * 33) == values_there));
    auto copy = make<TestType>("again", rows, 33, std::vector<float>(rows * 33, -7.0f));
    read_rows<false>(ferry::detail::file::open_to_read("test", path), 5, ferry::make_ref(copy));
    CHECK((take(copy) == values_there));
  }
}

TEST_CASE("a strided array travels in row-major order", "[io]") {
  auto random = generator();
  const temporary_folder folder;
  const std::string path = folder.path() + "/strided";
  // Column-major, of rank 3; the row of the second one is larger than a buffer.
  for (const auto& extents : {std::array<std::size_t, 3>{5, 7, 11}, {1, 3, 2800001}}) {
    const Kokkos::View<float***, Kokkos::LayoutLeft, Kokkos::HostSpace> source("from", extents[0], extents[1],
                                                                               extents[2]);
    const Kokkos::View<float***, Kokkos::LayoutLeft, Kokkos::HostSpace> copy("to", extents[0], extents[1],
                                                                             extents[2]);
    const auto numbers = values<float>(random, source.size());
    std::size_t place = 0;
    for (std::size_t i = 0; i < extents[0]; ++i)
      for (std::size_t j = 0; j < extents[1]; ++j)
        for (std::size_t k = 0; k < extents[2]; ++k)
          source.data()[i + extents[0] * (j + extents[1] * k)] = numbers[place++];
    {
      ferry::detail::atomic_file target("test", path);
      ferry::detail::write_rows<true>(ferry::make_ref(source), target.content(), 0);
      target.commit();
    }
    CHECK((content_of(path, 0, numbers.size()) == numbers));
    read_rows<true>(ferry::detail::file::open_to_read("test", path), 0, ferry::make_ref(copy));
    bool same = true;
    for (std::size_t i = 0; i < source.size(); ++i) same = same && source.data()[i] == copy.data()[i];
    CHECK(same);
  }
}

TEST_CASE("pieces cover an array once, and an error ends the stream", "[io]") {
  for (const std::int64_t total : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1001}}) {
    std::vector<std::atomic<int>> result(static_cast<std::size_t>(total));
    ferry::detail::parallel(total, 10, [&](std::int64_t first, std::int64_t count) {
      if (first % 10 != 0 || count < 1 || count > 10) result[0] += 100;
      for (std::int64_t i = first; i < first + count; ++i) ++result[static_cast<std::size_t>(i)];
    });
    bool covers_each = true;
    for (const auto& count : result) covers_each = covers_each && count == 1;
    CHECK(covers_each);
  }
  ferry::tensor<float, ferry::pageable_space> table("table", 100);
  CHECK_THROWS_AS(ferry::detail::stream<false>(
                      exec_space{}, ferry::make_ref(table),
                      [](float*, std::int64_t, std::int64_t) { throw std::runtime_error("no such piece"); }),
                  std::runtime_error);
}

TEST_CASE("a file that ends early, is a folder or is missing", "[io]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/short";
  {
    ferry::detail::atomic_file target("test", path);
    target.content().write_at("abc", 3, 0);
    target.commit();
  }
  const auto rows_file = ferry::detail::file::open_to_read("test", path);
  char read[4] = {};
  CHECK_THROWS_MATCHES(rows_file.read_at(read, 4, 0), ferry::io_error,
                       MessageMatches(ContainsSubstring(path) && ContainsSubstring("ends at byte 3")));
  CHECK_THROWS_MATCHES(ferry::detail::file::open_to_read("test", folder.path()), ferry::io_error,
                       MessageMatches(ContainsSubstring("folder")));
  CHECK_THROWS_MATCHES(ferry::detail::file::open_to_read("test", folder.path() + "/none"), ferry::io_error,
                       MessageMatches(ContainsSubstring("/none: open: No such file")));
  CHECK_THROWS_MATCHES(ferry::detail::file::open_to_read("test", "/dev/null"), ferry::io_error,
                       MessageMatches(ContainsSubstring("no regular file")));
}

}  // namespace ferry_test::stream_rows_test
