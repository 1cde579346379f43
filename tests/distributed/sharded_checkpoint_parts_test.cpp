// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"

#include <ferry/int8.hpp>
#include <ferry/io.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

/// Checkpoints of sharded tables that have many chunks, long rows, short rows, or none.
namespace ferry_test::sharded_checkpoint_parts_test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

/// Numbers that differ from row to row and from column to column.
template <class T>
ferry::tensor<T, host> numbers(std::size_t rows, std::size_t columns, std::size_t salt = 0) {
  ferry::tensor<T, host> array("plain", rows, columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      array.data()[r * columns + c] = static_cast<T>(static_cast<float>((r * 131 + c * 7 + salt) % 2011));
  return array;
}

template <class T>
void poison(ferry::tensor<T, host>& array) {
  std::fill_n(array.data(), array.size(), static_cast<T>(-1.0f));
}

/// A table that ranks save loads as an ordinary one, and the other way round.
template <class T>
void round_trip(std::size_t rows, std::size_t columns, int ranks) {
  const watchdog guard("chunks", std::chrono::seconds(120));
  const exec_space exec;
  const auto comm = group_of(ranks);
  const auto plain = numbers<T>(rows, columns), later = numbers<T>(rows, columns, 5);
  for_each_sharding([&](auto spread) {
    const temporary_folder folder;
    const std::string path = folder.path() + "/run";
    ferry::sharded_table<T, host, decltype(spread)> table("w", comm, rows, columns, spread);
    ferry::copy(exec, plain, table).wait();
    ferry::io::checkpoint run(path);
    run.add("weights", table);
    comm.run([&] { run.save(); });
    CHECK(entries_of(path) <= 2 + ranks);  // manifest, lock, a file for each rank

    ferry::tensor<T, host> read("read", rows, columns);
    poison(read);
    ferry::io::checkpoint ordinary(path);
    ordinary.add("weights", read);
    ordinary.load();
    CHECK(same_bits(read.data(), plain.data(), plain.size()));
    std::copy_n(later.data(), later.size(), read.data());
    ordinary.save();
    CHECK(entries_of(path) == 4);
    comm.run([&] { run.load(); });
    CHECK(same_table(exec, table, later));
  });
}

}  // namespace

TEST_CASE("ranks save and load arrays of any extents", "[distributed][once]") {
  for (const int ranks : {1, 2, 4}) {
    if (ranks != 1) {
      round_trip<float>(140, 16384, ranks);         // 64 KiB, a row of a piece, 3 chunks
      round_trip<double>(91, 12501, ranks);         // longer rows: chunks begin and end within rows
      round_trip<ferry::half_t>(642859, 7, ranks);  // short rows, 3 chunks
    }
    round_trip<float>(1, 5, ranks);
    round_trip<float>(0, 5, ranks);
    round_trip<float>(5, 0, ranks);
  }
}

TEST_CASE("ranks convert elements, and load tables of 8-bit rows", "[distributed]") {
  const watchdog guard("conversions");
  const exec_space exec;
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  const auto plain = numbers<float>(70001, 33);  // 3 chunks
  const auto wide = numbers<double>(70001, 33);
  ferry::rowwise_int8_tensor<host> codes("codes", 70001, 33), read("read", 70001, 33);
  ferry::quantize(exec, plain, codes).wait();
  {
    auto copy_of_plain = numbers<float>(70001, 33);
    ferry::io::checkpoint run(path);
    run.add("w", copy_of_plain);
    run.add("codes", codes);
    run.save();
  }
  const auto comm = group_of(3);
  ferry::sharded_table<double, host, ferry::sharding::hashed<3>> table("w", comm, 70001, 33);
  ferry::sharded_rowwise_int8<host, ferry::sharding::block> shards("codes", comm, 70001, 33);
  ferry::init::constant(exec, table, -1);
  ferry::io::checkpoint run(path);
  run.add("w", table);
  run.add("codes", shards);
  CHECK_THROWS_MATCHES(comm.run([&] { run.load(); }), ferry::io_error,
                       MessageMatches(ContainsSubstring("load_options::convert would convert it")));
  comm.run([&] { run.load({.convert = true}); });
  CHECK(same_table(exec, table, wide));
  comm.run([&] { run.save(); });

  ferry::tensor<double, host> doubles("w", 70001, 33);
  ferry::io::checkpoint ordinary(path);
  ordinary.add("w", doubles);
  ordinary.add("codes", read);
  ordinary.load();
  CHECK(same_bits(doubles.data(), wide.data(), wide.size()));
  CHECK(same_bits(read.records().data(), codes.records().data(), codes.records().size()));
  ferry::sharded_rowwise_int8<host> narrow("codes", comm, 70001, 32);
  ferry::io::checkpoint wrong(path);
  wrong.add("codes", narrow);
  CHECK_THROWS_MATCHES(comm.run([&] { wrong.load({.partial = true}); }), ferry::io_error,
                       MessageMatches(ContainsSubstring("width is 33 in the file, and 32 here")));
}

TEST_CASE("ranks save tables of their own", "[distributed]") {
  const watchdog guard("own tables");
  const exec_space exec;
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  const auto comm = group_of(4);
  const auto plain = numbers<float>(50, 30);
  comm.run([&](int rank) {
    ferry::sharded_table<float, host> table("w", comm, 50, 30);
    ferry::sharded_table<float, host, ferry::sharding::hashed<4>> hashed("w", comm, 50, 30);
    ferry::copy(exec, plain, table).wait();
    int turn = 3;
    ferry::io::checkpoint run(path), loads(path);
    run.add("w", table);
    run.add("turn", turn);
    run.save();
    int count = 0;
    loads.add("w", hashed);
    loads.add("turn", count);
    loads.load();
    expect(count == 3, "the number");
    const auto row_pair = ferry::gather<host>(exec, hashed, std::vector<std::int64_t>{rank, 49}).get();
    expect(same_bits(row_pair.data(), plain.data() + rank * 30, 30), "a row");
    expect(same_bits(row_pair.data() + 30, plain.data() + 49 * 30, 30), "the last row");
  });
  CHECK(entries_of(path) >= 3);
}

TEST_CASE("the owner of a group saves changes, and saves in the background", "[distributed]") {
  const watchdog guard("changes");
  const exec_space exec;
  const temporary_folder folder;
  const std::string path = folder.path() + "/run";
  const auto comm = group_of(3);
  auto plain = numbers<float>(90001, 17);
  ferry::sharded_table<float, host> table("w", comm, 90001, 17);
  ferry::copy(exec, plain, table).wait();
  ferry::io::checkpoint run(path);
  run.add("w", table);
  comm.run([&] { run.save(); });
  table.shard(table.owner(4711))(static_cast<std::size_t>(table.local_row(4711)), 3) = plain(4711, 3) = 99;
  run.save({.changes = true});  // a patch in a file of the owner's on pieces of the ranks
  ferry::init::zeros(exec, table);
  comm.run([&] { run.load(); });
  CHECK(same_table(exec, table, plain));
  table.shard(table.owner(77))(static_cast<std::size_t>(table.local_row(77)), 0) = plain(77, 0) = 98;
  auto saving = run.save_async(exec);
  ferry::init::zeros(exec, table);
  saving.wait();
  CHECK(entries_of(path) == 4);  // manifest, lock, digests, data
  run.load();
  CHECK(same_table(exec, table, plain));
}

}  // namespace ferry_test::sharded_checkpoint_parts_test
