// SPDX-License-Identifier: Apache-2.0
#include "distributed/routes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Copies between sharded tables and arrays, and between shardings, against plain loops.
namespace ferry_test::copy_test {

namespace {

/// Row r of the whole table, element c.
template <class T>
T expected_value(std::size_t row, std::size_t column) {
  return T(static_cast<float>((row * 31 + column * 7) % 125));
}

/// Every shard of this object has the rows that the sharding gives it.
template <class T, class Table>
void expect_rows(const Table& table, int first, int last) {
  for (int r = first; r < last; ++r) {
    const auto& shard = table.shard(r);
    for (std::int64_t i = 0; i < table.rows_of(r); ++i)
      for (std::size_t c = 0; c < table.width(); ++c)
        expect(shard.data()[static_cast<std::size_t>(i) * table.width() + c] ==
                   expected_value<T>(static_cast<std::size_t>(table.global_row(r, i)), c),
               "a row of a shard");
  }
}

template <class Table>
void poison(Table& table, int first, int last) {
  using value = typename Table::value_type;
  for (int r = first; r < last; ++r) std::fill_n(table.shard(r).data(), table.shard(r).size(), value(-1));
}

/// A table of all ranks, or of each rank in turn.
template <class T, class Space, class Spread>
class tables {
 public:
  using table = ferry::sharded_table<T, Space, Spread>;

  tables(const ferry::communicator& comm, std::size_t rows, std::size_t columns, const Spread& spread,
         bool apart)
      : comm_(comm), rows_(rows), columns_(columns), spread_(spread) {
    if (!apart) shared_ = std::make_unique<table>("shared", comm, rows, columns, spread);
  }
  /// The table of a rank, made by the first call. Collective.
  table& of_rank(std::unique_ptr<table>& rank_table) const {
    if (shared_ != nullptr) return *shared_;
    rank_table = std::make_unique<table>("own", comm_, rows_, columns_, spread_);
    return *rank_table;
  }
  [[nodiscard]] table* shared() const { return shared_.get(); }

 private:
  ferry::communicator comm_;
  std::size_t rows_, columns_;
  Spread spread_;
  std::unique_ptr<table> shared_;
};

/// An array with `columns` columns and gaps between its rows, which a copy must leave alone.
template <class T>
struct spaced_array {
  Kokkos::View<T**, Kokkos::LayoutRight, Kokkos::HostSpace> whole;
  std::size_t columns;

  spaced_array(std::size_t rows, std::size_t width_of_rows, std::size_t gap)
      : whole("spaced", rows, width_of_rows + gap), columns(width_of_rows) {
    Kokkos::deep_copy(whole, T(-1));
  }
  [[nodiscard]] auto rows() const {
    return Kokkos::subview(whole, Kokkos::ALL, Kokkos::make_pair(std::size_t{0}, columns));
  }
  [[nodiscard]] bool has_rows() const {
    for (std::size_t r = 0; r < whole.extent(0); ++r)
      for (std::size_t c = 0; c < whole.extent(1); ++c)
        if (!(whole(r, c) == (c < columns ? expected_value<T>(r, c) : T(-1)))) return false;
    return true;
  }
};

template <class T>
void fill_rows_of(spaced_array<T>& array) {
  for (std::size_t r = 0; r < array.whole.extent(0); ++r)
    for (std::size_t c = 0; c < array.columns; ++c) array.whole(r, c) = expected_value<T>(r, c);
}

template <class Spread, class ToSpread, class Space = host, class T = float, class U = float>
void copy_all_ways(std::mt19937_64& random, int ranks, std::size_t rows, std::size_t columns) {
  const exec_space exec;
  const bool apart = random() % 2 == 0, second_apart = random() % 2 == 0;
  const auto spread = draw_sharding<Spread>(random, rows, ranks);
  const auto to_spread = draw_sharding<ToSpread>(random, rows, ranks);
  INFO(Spread::name << " to " << ToSpread::name << ", " << ranks << " ranks, " << rows << " x " << columns
                    << (apart ? ", apart" : "") << (second_apart ? ", target apart" : ""));
  const auto comm = group_of(ranks);
  const tables<T, Space, Spread> first(comm, rows, columns, spread, apart);
  const tables<U, host, ToSpread> second(comm, rows, columns, to_spread, second_apart);
  const int without = static_cast<int>(random() % 4);  // that rank takes no rows
  const std::size_t gap = random() % 3;
  comm.run([&](int rank) {
    std::unique_ptr<typename tables<T, Space, Spread>::table> rank_table;
    std::unique_ptr<typename tables<U, host, ToSpread>::table> second_table;
    auto& table = first.of_rank(rank_table);
    auto& target = second.of_rank(second_table);
    poison(table, rank, rank + 1);
    poison(target, rank, rank + 1);
    spaced_array<U> source(rows, columns, gap);
    fill_rows_of(source);
    ferry::copy(exec, source.rows(), table).wait();
    expect_rows<T>(table, rank, rank + 1);
    spaced_array<U> sink(rank == without ? 0 : rows, columns, gap);
    ferry::copy(exec, table, sink.rows()).wait();
    expect(sink.has_rows(), "the rows of an array");
    ferry::copy(exec, table, target).wait();
    expect_rows<U>(target, rank, rank + 1);
    comm.barrier();
  });
  if (apart || second_apart) return;
  // One thread for the whole group.
  poison(*first.shared(), 0, ranks);
  poison(*second.shared(), 0, ranks);
  spaced_array<U> source(rows, columns, gap), sink(rows, columns, gap);
  fill_rows_of(source);
  ferry::copy(exec, source.rows(), *first.shared()).wait();
  expect_rows<T>(*first.shared(), 0, ranks);
  ferry::copy(exec, *first.shared(), sink.rows()).wait();
  REQUIRE(sink.has_rows());
  ferry::copy(exec, *first.shared(), *second.shared()).wait();
  expect_rows<U>(*second.shared(), 0, ranks);
}

template <class Spread, class ToSpread, class Space = host, class T = float, class U = float>
void copy_sizes(std::uint64_t salt) {
  auto random = generator(salt);
  for (const int ranks : {1, 2, 3, 5})
    for (const std::size_t rows : {0u, 1u, 2u, 7u, 64u, 1021u})
      copy_all_ways<Spread, ToSpread, Space, T, U>(random, ranks, rows, 1 + random() % 9);
}

}  // namespace

TEST_CASE("copies of shardings in series", "[distributed]") {
  const watchdog guard("copies in series");
  using namespace ferry::sharding;
  copy_sizes<cyclic, block>(1);
  copy_sizes<block, cyclic>(2);
  copy_sizes<any_sharding, any_sharding>(3);
  copy_sizes<any_sharding, cyclic>(4);
  copy_sizes<replicated, block>(5);
  copy_sizes<block, replicated>(6);
}

TEST_CASE("copies of shardings in other orders", "[distributed]") {
  const watchdog guard("copies in other orders");
  using namespace ferry::sharding;
  copy_sizes<hashed<5>, cyclic>(7);
  copy_sizes<cyclic, hashed<5>>(8);
  copy_sizes<dealt, block>(9);
  copy_sizes<cyclic, dealt>(10);
  copy_sizes<backward, dealt>(11);
}

TEST_CASE("copies of sharded tables convert, from any memory", "[distributed]") {
  const watchdog guard("copies that convert");
  using namespace ferry::sharding;
  copy_sizes<cyclic, block, ferry::pageable_space, float, double>(12);
  copy_sizes<block, hashed<2>, ferry::pinned_space, ferry::half_t, float>(13);
  copy_sizes<hashed<2>, cyclic, ferry::pageable_space, double, ferry::half_t>(14);
}

TEST_CASE("copies of more rows than a list has", "[distributed]") {
  const watchdog guard("long copies");
  using namespace ferry::sharding;
  auto random = generator(15);
  copy_all_ways<cyclic, block>(random, 3, 150'001, 2);
  copy_all_ways<hashed<1>, cyclic>(random, 2, 150'001, 2);
  copy_all_ways<dealt, backward>(random, 2, 150'001, 2);
}

TEST_CASE("ranks copy shards of devices to arrays of devices and of the host, and back", "[devices]") {
#ifdef KOKKOS_ENABLE_THREADS
  SKIP("ranks can't share Kokkos::Threads");
#endif
  const watchdog guard("copies between devices");
  auto random = generator(17);
  for (const int ranks : rank_counts())
    for (const std::size_t rows : {1u, 3u, 50u, 70'001u}) {
      INFO(ranks << " ranks, " << rows << " rows");
      const auto comm =
          ferry::communicator::devices(all_in_turn(ranks), {.deadline = std::chrono::seconds(30)});
      const std::size_t columns = 1 + random() % 9;
      const any_sharding spread{static_cast<any_sharding::kind>(random() % 4)};
      ferry::sharded_table<float, ferry::device_space, any_sharding> table("w", comm, rows, columns, spread);
      ferry::sharded_table<float, ferry::device_space, ferry::sharding::block> target("o", comm, rows,
                                                                                      columns);
      ferry::tensor<float, host> right("right", rows, columns);
      for (std::size_t i = 0; i < right.size(); ++i)
        right.data()[i] = expected_value<float>(i / columns, i % columns);
      const auto copy_and_check = [&](const auto& exec, ferry::device home) {
        const auto check = [&](const auto& array, const char* name) {
          std::vector<float> read(array.size(), -1.0f);
          ferry::copy(exec, array, read).wait();
          expect(same_bits(read.data(), right.data(), read.size()), name);
        };
        ferry::tensor<float, ferry::device_space> whole("whole", home, rows, columns);
        ferry::tensor<float, ferry::pageable_space> pageable("pageable", rows, columns);
        ferry::tensor<float, ferry::pinned_space> pinned("pinned", rows, columns);
        ferry::tensor<float, host> mapped("mapped", rows, columns);
        ferry::init::constant(exec, table, -1);
        ferry::copy(exec, right, table).wait();
        for (int turn = 0; turn < 2; ++turn) {
          ferry::init::constant(exec, whole, -1);
          ferry::copy(exec, table, whole).wait();
          check(whole, "on a device");
          ferry::copy(exec, table, pageable).wait();
          check(pageable, "in pageable memory");
          ferry::copy(exec, table, pinned).wait();
          check(pinned, "in pinned memory");
          ferry::copy(exec, table, mapped).wait();
          check(mapped, "in mapped memory");
          ferry::init::constant(exec, target, -1);
          ferry::copy(exec, table, target).wait();
          ferry::init::constant(exec, whole, -1);
          ferry::copy(exec, target, whole).wait();
          check(whole, "in another sharding");
          ferry::init::constant(exec, table, -1);
          turn == 0 ? ferry::copy(exec, pageable, table).wait() : ferry::copy(exec, whole, table).wait();
        }
        ferry::init::constant(exec, whole, -1);
        ferry::copy(exec, table, whole).wait();
        check(whole, "from a device");
      };
      comm.run([&](int rank, const auto& exec) { copy_and_check(exec, comm.device(rank)); });
      copy_and_check(Kokkos::DefaultExecutionSpace{}, ferry::device{0});
    }
}

TEST_CASE("ranks copy more rows than a buffer has to pageable memory, and back", "[devices]") {
  if (ferry::detail::is_host_exec<Kokkos::DefaultExecutionSpace>) SKIP("hosts need no buffer");
  const watchdog guard("copies by buffers");
  constexpr std::size_t rows = 300'007, columns = 60;  // 72 MB
  for (const int ranks : rank_counts()) {
    const auto comm =
        ferry::communicator::devices(all_in_turn(ranks), {.deadline = std::chrono::seconds(30)});
    const auto check = [&](auto spread) {
      INFO(ranks << " ranks, " << decltype(spread)::name);
      ferry::sharded_table<float, ferry::device_space, decltype(spread)> table("w", comm, rows, columns,
                                                                               spread);
      comm.run([&](int, const auto& exec) {
        ferry::tensor<float, ferry::pageable_space> right("right", rows, columns),
            read("read", rows, columns);
        for (std::size_t i = 0; i < right.size(); ++i) right.data()[i] = static_cast<float>(i % 16'777'213);
        ferry::init::constant(exec, table, -1);
        ferry::copy(exec, right, table).wait();
        ferry::init::constant(exec, read, -1);
        ferry::copy(exec, table, read).wait();
        expect(same_bits(read.data(), right.data(), read.size()), "all rows");
      });
    };
    check(ferry::sharding::cyclic{});
    check(ferry::sharding::hashed<7>{});
  }
}

TEST_CASE("tables of groups of different sizes are copied by one thread", "[distributed]") {
  using namespace ferry::sharding;
  const exec_space exec;
  auto random = generator(16);
  for (int turn = 0; turn < 20; ++turn) {
    const std::size_t rows = random() % 200;
    const auto comm = group_of(1 + static_cast<int>(random() % 6)),
               target_group = group_of(1 + static_cast<int>(random() % 6));
    ferry::sharded_table<float, host> table("w", comm, rows, width);
    ferry::sharded_table<float, host> target("o", target_group, rows, width);
    spaced_array<float> source(rows, width, 0);
    fill_rows_of(source);
    ferry::copy(exec, source.rows(), table).wait();
    poison(target, 0, target_group.size());
    ferry::copy(exec, table, target).wait();
    expect_rows<float>(target, 0, target_group.size());
  }
}

TEST_CASE("a rank whose array does not fit ends the copy of all ranks", "[distributed]") {
  const watchdog guard("arrays that do not fit");
  const exec_space exec;
  const std::size_t rows = 40;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> table("w", comm, rows, width);
  spaced_array<float> source(rows, width, 0);
  fill_rows_of(source);
  ferry::copy(exec, source.rows(), table).wait();
  for (const bool into_shards : {false, true}) {
    comm.run([&](int rank) {
      spaced_array<float> array(rank == 1 ? rows - 1 : rows, width, 0);
      const auto act = [&] {
        if (into_shards)
          ferry::copy(exec, array.rows(), table).wait();
        else
          ferry::copy(exec, table, array.rows()).wait();
      };
      if (rank == 1)
        expect(has(said<ferry::invalid_argument>(act), "[39 x 6]"), "the extents");
      else
        expect(has(said<ferry::peer_error>(act), "rank 1"), "the rank that failed");
    });
    comm.run([&] {
      ferry::copy(exec, source.rows(), table).wait();
      spaced_array<float> sink(rows, width, 0);
      ferry::copy(exec, table, sink.rows()).wait();
      expect(sink.has_rows(), "the group can be used again");
    });
  }
}

TEST_CASE("a sequence of as many elements is copied into shards and back", "[distributed]") {
  const watchdog guard("copies of sequences");
  const exec_space exec;
  constexpr std::size_t rows = 41;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> table("w", comm, rows, width);
  std::vector<float> numbers(rows * width);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = expected_value<float>(i / width, i % width);
  ferry::copy(exec, numbers, table).wait();
  expect_rows<float>(table, 0, 3);
  std::vector<double> wide(rows * width, -1);
  ferry::copy(exec, table, std::span(wide)).wait();
  CHECK(std::equal(numbers.begin(), numbers.end(), wide.begin(), wide.end()));
  poison(table, 0, 3);
  comm.run([&](int rank) {
    ferry::copy(exec, std::span<const float>(numbers), table).wait();
    expect_rows<float>(table, rank, rank + 1);
    std::vector<float> rows_here(rank == 1 ? 0 : rows * width, -1.0f);
    ferry::copy(exec, table, rows_here).wait();
    expect(rows_here == (rank == 1 ? std::vector<float>{} : numbers), "the rows of all ranks");
  });
  numbers.pop_back();
  CHECK(has(said<ferry::invalid_argument>([&] { ferry::copy(exec, numbers, table).wait(); }), "[245]"));
  CHECK(has(said<ferry::invalid_argument>([&] { ferry::copy(exec, table, numbers).wait(); }), "[245]"));
}

TEST_CASE("copies of a table onto its own shards are refused", "[distributed]") {
  const watchdog guard("copies onto shards");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host, ferry::sharding::table_wise> table("w", comm, 30, width, {.rank = 0});
  const auto text = [&](const auto& act) { return said<ferry::invalid_argument>(act); };
  CHECK(has(text([&] { ferry::copy(exec, table, table.shard(0)).wait(); }), "overlap in memory"));
  CHECK(has(text([&] { ferry::copy(exec, table.shard(0), table).wait(); }), "overlap in memory"));
  CHECK(has(text([&] { ferry::copy(exec, table, table).wait(); }), "overlap in memory"));
  comm.run([&](int rank) {
    const auto act = [&] { ferry::copy(exec, table, table).wait(); };
    if (rank == 0)  // has all rows
      expect(has(text(act), "overlap in memory"), "onto itself");
    else
      expect(has(said<ferry::peer_error>(act), "rank 0"), "the rank that refused");
  });
}

}  // namespace ferry_test::copy_test
