// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/sharded/detail/push_values.hpp>
#include <ferry/distributed/sharded/detail/winning_values.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <memory>
#include <optional>
#include <utility>

/// The kernels of a scatter of ranks without a sort, on batches of several ranks by one thread: against plain
/// loops.
namespace ferry_test::winning_values_test {

namespace {

namespace detail = ferry::detail;
using device = ferry::device_space;
using main_exec = Kokkos::DefaultExecutionSpace;

template <class T>
ferry::tensor<T, device> on_device(const std::vector<T>& values) {
  ferry::tensor<T, device> array("array", values.size());
  if (!values.empty()) ferry::copy(main_exec(), values, array).wait();
  return array;
}
template <class Array>
auto contents(const Array& array) {
  using value = typename Array::value_type;
  ferry::tensor<value, host> read("read", array.rows(), array.width());
  ferry::copy(main_exec(), array, read).wait();
  return std::vector<value>(read.data(), read.data() + read.size());
}

/// Batches of ranks with their routes, as owners and ranks know them.
template <class T>
struct routed_batches {
  struct batch {
    std::vector<std::int64_t> ids;
    detail::route_groups route;
    ferry::tensor<std::int64_t, device> place, rows;
    ferry::tensor<T, device> memory;  ///< rows of the values lie `step` elements apart, after `shift`
    ferry::tensor<std::uint8_t, device> wins;
  };
  std::vector<batch> of_rank;
  detail::batch_headers headers;
  std::vector<T> expected;  ///< the table

  routed_batches(std::mt19937_64& random, int ranks, std::int64_t table_rows, std::size_t columns,
                 std::size_t most, bool is_aligned, bool is_last, const std::vector<T>& before)
      : expected(before) {
    const ferry::sharding::cyclic spread;
    std::vector<bool> is_taken(static_cast<std::size_t>(table_rows), false);
    for (int r = 0; r < ranks; ++r) {
      batch& mine = of_rank.emplace_back();
      const std::size_t count = random() % 5 == 0 ? 0 : random() % (most + 1);
      const std::size_t shift = is_aligned ? 0 : 1, step = columns + (is_aligned ? 0 : 3);
      const bool narrow = random() % 3 == 0;
      std::vector<T> numbers(shift + (count + 1) * step);
      for (T& number : numbers) number = static_cast<T>(random() % 120);
      std::vector<std::vector<std::int64_t>> places(static_cast<std::size_t>(ranks));
      for (std::size_t p = 0; p < count; ++p) {
        const auto row = static_cast<std::int64_t>(
            random() % static_cast<std::uint64_t>(narrow ? 1 + table_rows / 20 : table_rows));
        mine.ids.push_back(row);
        places[static_cast<std::size_t>(spread.owner(row, table_rows, ranks))].push_back(
            static_cast<std::int64_t>(p));
        if (!is_last && is_taken[static_cast<std::size_t>(row)]) continue;
        is_taken[static_cast<std::size_t>(row)] = true;
        for (std::size_t c = 0; c < columns; ++c)
          expected[static_cast<std::size_t>(row) * columns + c] = numbers[shift + p * step + c];
      }
      std::vector<std::int64_t> place, rows;
      mine.route.begin = {0};
      for (const auto& list : places) {
        for (const std::int64_t p : list) {
          place.push_back(p);
          rows.push_back(spread.local_row(mine.ids[static_cast<std::size_t>(p)], table_rows, ranks));
        }
        mine.route.begin.push_back(static_cast<std::int64_t>(place.size()));
        headers.counts.push_back(static_cast<std::int64_t>(list.size()));
      }
      mine.place = on_device(place);
      mine.rows = on_device(rows);
      mine.memory = on_device(numbers);
      mine.wins = on_device(std::vector<std::uint8_t>(place.size(), 77));
      detail::batch_offer& offer = headers.offers.emplace_back();
      offer.place = mine.place.data();
      offer.rows = mine.rows.data();
      offer.values = reinterpret_cast<const std::byte*>(mine.memory.data() + shift);
      offer.value_step = static_cast<std::int64_t>(step * sizeof(T));
      offer.wins = mine.wins.data();
      offer.is_made = offer.pushes = 1;
    }
  }
  /// The headers as an owner gets them.
  detail::batch_headers headers_of(int owner) const {
    detail::batch_headers known = headers;
    known.in_begin = {0};
    for (std::size_t r = 0; r < of_rank.size(); ++r)
      known.in_begin.push_back(known.in_begin.back() + known.count(r, owner));
    return known;
  }
};

template <class T, class Duplicates>
void check(std::mt19937_64& random, std::size_t columns, std::size_t most) {
  const main_exec exec;
  for (const int ranks : {1, 2, 3, 4, 7}) {
    const auto rows = static_cast<std::int64_t>(static_cast<std::size_t>(ranks) + random() % (most + 9));
    const bool is_aligned = random() % 2 == 0;
    CAPTURE(ranks, rows, columns, most, is_aligned, Duplicates::name);
    const auto comm = ferry::communicator::devices(std::vector<int>(static_cast<std::size_t>(ranks), 0));
    ferry::sharded_table<T, device> pulled("pulled", comm, static_cast<std::size_t>(rows), columns);
    ferry::sharded_table<T, device> pushed("pushed", comm, static_cast<std::size_t>(rows), columns);
    std::vector<T> before(static_cast<std::size_t>(rows) * columns, T(121));
    ferry::init::constant(exec, pulled, T(121));
    ferry::init::constant(exec, pushed, T(121));
    const routed_batches<T> batch(random, ranks, rows, columns, most, is_aligned,
                                  !std::is_same_v<Duplicates, ferry::duplicates::first>, before);
    for (int owner = 0; owner < ranks; ++owner) {
      const auto known = batch.headers_of(owner);
      if (known.in_begin.back() == 0) continue;
      detail::write_winning_values<Duplicates>("test", exec, owner, known,
                                               ferry::make_ref(pulled.shard(owner)))
          .join();
    }
    CHECK(contents(pulled) == batch.expected);
    std::vector<std::unique_ptr<detail::claimed_shard<main_exec>>> claims;
    for (int owner = 0; owner < ranks; ++owner)
      claims.push_back(std::make_unique<detail::claimed_shard<main_exec>>(
          std::type_identity<Duplicates>(), "test", exec, owner, batch.headers_of(owner),
          ferry::make_ref(pushed.shard(owner))));
    for (const auto& mine : batch.of_rank) {
      const detail::routed_lists lists{nullptr, mine.place.data(), mine.rows.data()};
      auto values = detail::dense_rows<const T, device>(mine.memory.data() + (is_aligned ? 0 : 1),
                                                        static_cast<std::int64_t>(mine.ids.size()),
                                                        static_cast<std::int64_t>(columns), "values");
      values.strides[0] = static_cast<std::int64_t>(columns) + (is_aligned ? 0 : 3);
      detail::push_values("test", exec, pushed, lists, mine.route, mine.wins.data(), values).join();
    }
    while (!claims.empty()) {
      claims.back()->finish();
      claims.pop_back();
    }
    CHECK(contents(pushed) == batch.expected);
  }
}

}  // namespace

TEST_CASE("strands have each item once", "[distributed][winners]") {
  for (const std::int64_t items : {0, 1, 15, 16, 17, 511, 512, 513, 5000}) {
    const ferry::kernels::item_strands order(items);
    std::vector<int> times(static_cast<std::size_t>(items), 0);
    std::int64_t none = 0;
    for (std::int64_t k = 0; k < order.numbers(); ++k) {
      if (order(k) < items)
        ++times[static_cast<std::size_t>(order(k))];
      else
        ++none;
    }
    CHECK(times == std::vector<int>(static_cast<std::size_t>(items), 1));
    CHECK(none < order.strands * order.block);
  }
}

TEMPLATE_TEST_CASE("owners pull and ranks push the values that win", "[distributed][winners]", float,
                   std::uint8_t, double) {
  auto random = generator(171);
  for (const std::size_t columns : {1u, 4u, 16u, 33u, 128u})
    for (const std::size_t most : {3u, 100u, 3000u}) {
      check<TestType, ferry::duplicates::last>(random, columns, most);
      check<TestType, ferry::duplicates::first>(random, columns, most);
    }
}

}  // namespace ferry_test::winning_values_test
