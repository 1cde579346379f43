// SPDX-License-Identifier: Apache-2.0
#include "reference/lru.hpp"
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>

/// Random calls on a cache of the rows used last, next to a model of it and to plain numbers.
namespace ferry_test::lru_test {
namespace {

using table_type = ferry::tensor<float, ferry::mapped_space>;

/// A table, its cache, their model, and the numbers that the table should have.
class random_calls {
 public:
  explicit random_calls(std::mt19937_64& random)
      : random_(random),
        groups_(pick<std::int64_t>({1, 1, 2, 3, 7, 40})),
        slots_(pick<std::int64_t>({1, 2, 3, 8, 17, 60})),
        group_rows_(pick<std::int64_t>({1, slots_, slots_ + 1, 3 * slots_, 100})),
        width_(pick<std::size_t>({1, 3, 8, 20})),
        write_back_(chance(2)),
        numbers_(static_cast<std::size_t>(rows()) * width_),
        table_(make_table()),
        hot_(table_, ferry::cache::lru{.slots = slots_, .groups = groups_, .write_back = write_back_}),
        model_(groups_, slots_, group_rows_) {}

  /// One call. Returns its positions.
  template <class Index>
  std::size_t call() {
    CAPTURE(groups_, slots_, group_rows_, width_, write_back_);
    switch (random_() % 16) {
      case 0:
        return forget();
      case 1:
        return gather<Index>();
      case 2:
        return scatter<Index>();
      case 3:
        return add<Index>();
      case 4:
        return check_table();
      case 5:
        return chance(20) ? resize() : prefetch<Index>();
      default:
        return resolve<Index>();
    }
  }

  void check() {
    check_slots();
    hot_.flush(exec_).wait();
    CHECK(take(table_) == numbers_);
    CHECK(hot_.statistics().hits == hits_);
    CHECK(hot_.statistics().misses == misses_);
  }

 private:
  [[nodiscard]] std::int64_t rows() const { return groups_ * group_rows_; }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(random_() % choices.size()));
  }
  bool chance(std::uint64_t trials) { return random_() % trials == 0; }
  /// Lower numbers come more often.
  std::int64_t skewed_below(std::int64_t end) {
    auto number = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
    return chance(3) ? number : number * number / end;
  }

  table_type make_table() {
    for (float& number : numbers_) number = static_cast<float>(random_() % 100);
    return make<ferry::mapped_space>("store", static_cast<std::size_t>(rows()), width_, numbers_);
  }

  struct batch {
    std::vector<std::int64_t> rows;
    bool by_lines;
    [[nodiscard]] std::size_t line(std::int64_t groups) const {
      return by_lines ? rows.size() / static_cast<std::size_t>(groups) : rows.size();
    }
  };
  template <class Index>
  batch draw(bool hostile) {
    batch result{{}, chance(2)};
    const auto line = static_cast<std::size_t>(
        1 + random_() % static_cast<std::uint64_t>(chance(8) ? 2 * slots_ + 3 : slots_ / 2 + 2));
    result.rows.resize(result.by_lines ? line * static_cast<std::size_t>(groups_) : line);
    for (std::size_t p = 0; p < result.rows.size(); ++p)
      result.rows[p] = chance(9) ? -1
                       : result.by_lines
                           ? static_cast<std::int64_t>(p / line) * group_rows_ + skewed_below(group_rows_)
                           : skewed_below(rows());
    if (hostile && chance(12)) {
      const std::int64_t bad =
          pick<std::int64_t>({-2, rows(), rows() + 7, std::numeric_limits<Index>::min(),
                              std::numeric_limits<Index>::max(), result.by_lines ? random_row() : rows()});
      result.rows[random_() % result.rows.size()] = bad;
    }
    return result;
  }
  std::int64_t random_row() {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(rows()));
  }
  template <class Index>
  static std::vector<Index> typed(const std::vector<std::int64_t>& list) {
    return {list.begin(), list.end()};
  }
  template <class Index>
  ferry::tensor<Index, ferry::device_space> array_of(const batch& list, const std::vector<Index>& content) {
    if (!list.by_lines) return make<ferry::device_space>("list", content);
    return make<ferry::device_space>("lines", static_cast<std::size_t>(groups_), list.line(groups_), content);
  }

  lru_model::outcome expect(const std::vector<std::int64_t>& list, bool by_lines, bool spills) {
    auto outcome = model_.resolve(list, by_lines, spills);
    hits_ += outcome.hits;
    misses_ += outcome.misses;
    return outcome;
  }
  /// Waits for the error that the model expects.
  static void wait_for(ferry::ticket ticket, const lru_model::outcome& expected) {
    if (expected.bad != 0)
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    else if (expected.overflows != 0)
      CHECK_THROWS_AS(ticket.wait(), ferry::invalid_argument);
    else
      ticket.wait();
  }

  template <class Index>
  std::size_t resolve() {
    const batch list = draw<Index>(true);
    const bool spills = chance(2);
    CAPTURE(list.rows, list.by_lines, spills);
    const auto rows_array = array_of(list, typed<Index>(list.rows));
    auto slots = array_of(list, std::vector<Index>(list.rows.size(), 77));
    const auto expected = expect(list.rows, list.by_lines, spills);
    if (spills)
      wait_for(ferry::resolve(exec_, hot_, rows_array, slots, ferry::overflow::spill{}), expected);
    else
      wait_for(ferry::resolve(exec_, hot_, rows_array, slots, ferry::occupancy::blocks<3>{}), expected);
    const auto result = take(slots);
    CHECK(std::vector<std::int64_t>(result.begin(), result.end()) == expected.slots);
    if (chance(8)) check_slots();
    return list.rows.size();
  }
  template <class Index>
  std::size_t prefetch() {
    const batch list = draw<Index>(false);
    const auto rows_array = array_of(list, typed<Index>(list.rows));
    const auto expected = expect(list.rows, list.by_lines, true);
    const exec_space side;
    wait_for(hot_.prefetch(side, rows_array, ferry::overflow::spill{}), expected);
    return list.rows.size();
  }
  std::size_t forget() {
    const auto group = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(groups_));
    hot_.forget(exec_, group).detach();
    model_.forget(group);
    return 1;
  }
  std::size_t resize() {
    slots_ = pick<std::int64_t>({1, 5, 20});
    hot_.resize(slots_ * groups_ + groups_ - 1);
    model_ = {groups_, slots_, group_rows_};
    return 1;
  }

  /// Row numbers that a verb on rows takes.
  template <class Index>
  std::vector<std::int64_t> draw_indices() {
    auto list = draw<Index>(false).rows;
    for (std::int64_t& row : list) row = row < 0 ? random_row() : row;
    return list;
  }
  template <class Index>
  std::size_t gather() {
    auto list = draw_indices<Index>();
    const bool is_bad = chance(10);
    if (is_bad) list[random_() % list.size()] = pick<std::int64_t>({-5, rows()});
    const auto ids = typed<Index>(list);
    auto out =
        make<ferry::device_space>("out", list.size(), width_, std::vector<float>(list.size() * width_, -1));
    auto ticket = ferry::gather(exec_, hot_, ids, out);
    for (std::int64_t& row : list) row = row < 0 || row >= rows() ? -1 : row;
    expect(list, false, true);
    if (is_bad) {
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    } else {
      ticket.wait();
      const auto result = take(out);
      for (std::size_t p = 0; p < list.size(); ++p)
        for (std::size_t c = 0; c < width_; ++c) REQUIRE(result[p * width_ + c] == number(list[p], c));
    }
    return list.size();
  }
  template <class Index>
  std::size_t scatter() {
    auto list = draw_indices<Index>();
    const auto batch_rows = new_numbers(list.size());
    for (std::size_t p = 0; p < list.size(); ++p)
      for (std::size_t c = 0; c < width_; ++c) number(list[p], c) = batch_rows[p * width_ + c];
    ferry::scatter(exec_, hot_, typed<Index>(list),
                   make<ferry::device_space>("new", list.size(), width_, batch_rows))
        .wait();
    return expect_sorted(list);
  }
  template <class Index>
  std::size_t add() {
    auto list = draw_indices<Index>();
    const auto batch_rows = new_numbers(list.size());
    for (std::size_t p = 0; p < list.size(); ++p)
      for (std::size_t c = 0; c < width_; ++c) number(list[p], c) += batch_rows[p * width_ + c];
    ferry::scatter_add(exec_, hot_, typed<Index>(list),
                       make<ferry::device_space>("new", list.size(), width_, batch_rows))
        .wait();
    return expect_sorted(list);
  }
  /// Verbs with a plan name rows in ascending order.
  std::size_t expect_sorted(std::vector<std::int64_t>& list) {
    std::sort(list.begin(), list.end());
    expect(list, false, true);
    if (!write_back_ && chance(4)) CHECK(take(table_) == numbers_);
    return list.size();
  }
  std::vector<float> new_numbers(std::size_t count) {
    std::vector<float> numbers(count * width_);
    for (float& entry : numbers) entry = static_cast<float>(random_() % 100);
    return numbers;
  }
  float& number(std::int64_t row, std::size_t column) {
    return numbers_[static_cast<std::size_t>(row) * width_ + column];
  }

  /// Verbs read the table itself: at any time if verbs on the cache write to it, else after a flush.
  std::size_t check_table() {
    if (write_back_) hot_.flush(exec_).detach();
    auto copy = make<ferry::device_space>("copy", static_cast<std::size_t>(rows()), width_,
                                          std::vector<float>(numbers_.size(), -1));
    ferry::copy(exec_, table_, copy).wait();
    CHECK(take(copy) == numbers_);
    return 1;
  }
  void check_slots() {
    const auto& row_of = model_.rows();
    const auto view = hot_.device_rows();
    REQUIRE(view.rows() == row_of.size());
    std::vector<float> content(row_of.size() * width_);
    copy_to_host<ferry::device_space>(content.data(), view.data(), content.size() * sizeof(float));
    for (std::size_t s = 0; s < row_of.size(); ++s)
      if (row_of[s] >= 0)
        for (std::size_t c = 0; c < width_; ++c) REQUIRE(content[s * width_ + c] == number(row_of[s], c));
  }

  std::mt19937_64& random_;
  const exec_space exec_;
  std::int64_t groups_, slots_, group_rows_;
  std::size_t width_;
  bool write_back_;
  std::vector<float> numbers_;
  table_type table_;
  ferry::cached_table<table_type, ferry::cache::lru> hot_;
  lru_model model_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

/// Positions of the test, by the environment for a long run.
std::size_t positions_to_test() {
  const char* const text = std::getenv("FERRY_TEST_LRU_POSITIONS");
  return text == nullptr ? 100000 : static_cast<std::size_t>(std::atoll(text));
}

}  // namespace

TEST_CASE("random calls on a cache of the rows used last", "[cache][lru]") {
  auto random = generator(71);
  std::size_t positions = 0;
  for (std::size_t trial = 0; positions < positions_to_test(); ++trial) {
    CAPTURE(trial);
    random_calls calls(random);
    for (int i = 0; i < 120; ++i)
      positions += (random() & 1) != 0 ? calls.call<std::int32_t>() : calls.call<std::int64_t>();
    calls.check();
  }
}

}  // namespace ferry_test::lru_test
