// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// Steps under step_count::catch_up with rows of one warp, which count themselves, and of several. Expected are the bits
/// of a loop over the elements, and the last step of each row.
namespace ferry_test::counted_lanes_test {

namespace optim = ferry::optim;

template <class Rule>
class loop_over_elements {
 public:
  loop_over_elements(const Rule& rule, int steps, const std::vector<float>& start, std::size_t rows)
      : weights_(start),
        first_(start.size()),
        second_(start.size()),
        last_(rows),
        width_(start.size() / rows) {
    for (int step = 0; step <= steps; ++step)
      updates_.push_back(rule.template coefficients<float>(std::max(1, step)));
  }

  void step(std::size_t number, std::size_t row, const std::vector<float>& gradient) {
    for (std::size_t c = 0; c < width_; ++c) {
      const std::size_t i = row * width_ + c;
      float state[2] = {first_[i], second_[i]};
      for (std::size_t t = last_[row] + 1; t < number; ++t) {
        // The library leaves out elements at rest, which this loop does not.
        if (state[0] != 0.0f && updates_[t].at_rest(weights_[i], state)) FAIL("an element came to rest");
        updates_[t].apply(weights_[i], 0.0f, state);
      }
      updates_[number].apply(weights_[i], gradient[c], state);
      first_[i] = state[0];
      second_[i] = state[1];
    }
    last_[row] = static_cast<std::uint32_t>(number);
  }
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  [[nodiscard]] const std::vector<std::uint32_t>& last() const { return last_; }

 private:
  std::vector<decltype(std::declval<const Rule&>().template coefficients<float>(1))> updates_;
  std::vector<float> weights_, first_, second_;
  std::vector<std::uint32_t> last_;
  std::size_t width_;
};

/// The gradients of a batch. Large ones in every third row have squares beyond the middle of the range.
std::vector<float> gradients(std::mt19937_64& random, std::size_t n, std::size_t width) {
  std::uniform_real_distribution<float> plain(0.5f, 1.0f);
  std::vector<float> values(n * width);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < width; ++c) {
      const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
      const bool is_large = i % 3 == 0 && (c + i) % 5 == 0;
      values[i * width + c] = sign * std::ldexp(plain(random), is_large ? 30 : 0);
    }
  return values;
}

std::size_t different_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) ++count;
  return count;
}

template <class Space = ferry::device_space, class Rule>
void counts_and_has_the_bits(const Rule& rule, std::size_t rows, std::size_t width, std::size_t n,
                             int steps) {
  CAPTURE(Rule::name, Space::name, rows, width, n);
  auto random = generator(211);
  const exec_space exec;
  const auto start = values<float>(random, rows * width);
  auto table = make<Space>("weights", rows, width, start);
  auto state = optim::make_state(rule, table);
  loop_over_elements<Rule> expected(rule, steps, start, rows);
  std::vector<std::int64_t> every(rows);
  std::iota(every.begin(), every.end(), 0);
  for (int step = 1; step <= steps; ++step) {
    std::shuffle(every.begin(), every.end(), random);
    std::vector<std::int64_t> named(every.begin(), every.begin() + static_cast<std::ptrdiff_t>(n));
    if (n > 2) named.back() = named.front();
    const auto values_of_step = gradients(random, n, width);
    ferry::step(exec, rule, table, state, ferry::make_plan(exec, named, static_cast<std::int64_t>(rows)),
                make<ferry::device_space>("grads", n, width, values_of_step), ferry::step_count::catch_up{})
        .wait();
    for (std::size_t i = 0; i < n; ++i) {
      if (n > 2 && i == n - 1) break;
      std::vector<float> sum(values_of_step.begin() + static_cast<std::ptrdiff_t>(i * width),
                             values_of_step.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      if (n > 2 && i == 0)
        for (std::size_t c = 0; c < width; ++c) sum[c] += values_of_step[(n - 1) * width + c];
      expected.step(static_cast<std::size_t>(step), static_cast<std::size_t>(named[i]), sum);
    }
  }
  CHECK(different_bits(take(table), expected.weights()) == 0);
  CHECK(take(state.row_steps()) == expected.last());
}

TEST_CASE("rows that catch up are counted once, whether their threads share a warp or not",
          "[optim][step_count]") {
  const optim::adam adam{.lr = 0.01, .eps = 0.25};
  for (const std::size_t width : {4, 8, 12, 16, 20, 32, 64, 128, 132, 256, 3, 1}) {
    for (const std::size_t n : {1, 3, 65, 700}) counts_and_has_the_bits(adam, 900, width, n, 5);
    counts_and_has_the_bits(optim::adamw{.lr = 0.01, .eps = 0.25}, 300, width, 100, 7);
    counts_and_has_the_bits(optim::adam{.lr = 0.01, .eps = 0.25, .maximize = true}, 300, width, 100, 7);
  }
}

TEST_CASE("rows in memory of the host that catch up are counted once", "[optim][step_count]") {
  const optim::adam adam{.lr = 0.01, .eps = 0.25};
  for (const std::size_t width : {4, 12, 128, 132}) {
    counts_and_has_the_bits<ferry::mapped_space>(adam, 500, width, 300, 5);
    counts_and_has_the_bits<ferry::pinned_space>(adam, 500, width, 300, 5);
  }
}

TEST_CASE("rows that catch up are counted once where a block takes several", "[optim][step_count][once]") {
  constexpr std::size_t share = ferry::HostExecutionSpace<exec_space> ? 20 : 1;  // a host has no blocks
  counts_and_has_the_bits(optim::adam{.lr = 0.01, .eps = 0.25}, 50000 / share, 128, 40000 / share, 3);
  counts_and_has_the_bits(optim::adam{.lr = 0.01, .eps = 0.25}, 400000 / share, 8, 390001 / share, 3);
}

}  // namespace ferry_test::counted_lanes_test
