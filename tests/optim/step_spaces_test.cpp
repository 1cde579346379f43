// SPDX-License-Identifier: Apache-2.0
#include "optim/step_kit.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::step_spaces_test {

/// A table, its state and the gradients, each in a space of its own.
template <class Table, class State, class Gradients>
struct places {
  using table = Table;
  using state = State;
  using gradients = Gradients;
};

using device = ferry::device_space;
using pinned = ferry::pinned_space;
using mapped = ferry::mapped_space;
using pageable = ferry::pageable_space;
using mixtures = std::tuple<places<mapped, device, pageable>, places<mapped, pageable, device>,
                            places<pinned, pageable, pinned>, places<pageable, device, device>,
                            places<device, mapped, pageable>, places<device, device, pageable>>;

TEMPLATE_LIST_TEST_CASE("a step with arrays in several spaces is taken, or refused before it counts",
                        "[step]", mixtures) {
  auto random = generator(77);
  const exec_space exec;
  constexpr std::size_t rows = 40, width = 7, count = 25;
  const auto start = values<float>(random, rows * width);
  const auto gradient = values<float>(random, count * width);
  std::vector<std::int64_t> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int64_t>((3 * i + 1) % rows);
  auto table = make<typename TestType::table>("weights", rows, width, start);
  const auto grads = make<typename TestType::gradients>("gradients", count, width, gradient);
  const ferry::optim::sgd rule{.lr = 0.5, .momentum = 0.9};
  auto state = ferry::optim::make_state<typename TestType::state>(rule, table);
  auto expected = start;
  std::string refusal;
  try {
    ferry::step(exec, rule, table, state, ids, grads).wait();
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < width; ++j)
        expected[static_cast<std::size_t>(ids[i]) * width + j] -= 0.5f * gradient[i * width + j];
  } catch (const ferry::invalid_argument& refused) {
    refusal = refused.what();
  }
  CHECK(same_bits(take(table), expected));
  CHECK(state.steps() == (refusal.empty() ? 1 : 0));
  CHECK((refusal.empty() || refusal.find("pageable_space") != std::string::npos));
}

// Steps of small batches without a plan, which a device searches in one launch, give the bits of a plan.

template <class T, class Rule, class... Policies>
void train_both(const Rule& rule, std::size_t width, Policies... policies) {
  auto random = generator(291);
  const exec_space exec;
  constexpr std::size_t rows = 2500;
  const auto start = values<T>(random, rows * width);
  auto searched = make<device>("weights", rows, width, start);
  auto planned = make<device>("weights", rows, width, start);
  auto state = ferry::optim::make_state(rule, searched);
  auto twin_state = ferry::optim::make_state(rule, planned);
  for (const std::size_t n : {1u, 32u, 100u, 513u, 1024u, 1025u}) {
    CAPTURE(width, n);
    auto ids = indices<std::int64_t>(random, n, n > 100 ? rows : 9);
    for (std::size_t p = 0; p < n; p += 5) ids[p] = 4;  // also more than sums in a kernel's own loop
    const auto grads = make<device>("grads", n, width, values<float>(random, n * width));
    ferry::step(exec, rule, searched, state, ids, grads, policies...).wait();
    ferry::step(exec, rule, planned, twin_state, ferry::make_plan(exec, ids, rows), grads, policies...)
        .wait();
    CHECK(same_bits(take(searched), take(planned)));
  }
  CHECK_FALSE(same_bits(take(searched), start));
  CHECK(state.fields() == twin_state.fields());
  for (int f = 0; f < state.fields(); ++f) CHECK(same_bits(take(state.field(f)), take(twin_state.field(f))));
}

TEST_CASE("small steps without a plan give the bits of a plan", "[optim][step][search]") {
  for (const std::size_t width : {4u, 5u, 64u, 132u}) {
    train_both<float>(ferry::optim::sgd{.lr = 0.1}, width);
    train_both<float>(ferry::optim::adam{.lr = 1e-2}, width);
    train_both<float>(ferry::optim::adam{.lr = 1e-2, .amsgrad = true}, width);
    train_both<ferry::half_t>(ferry::optim::adagrad{.lr = 1e-2}, width, ferry::rounding::stochastic{});
    train_both<float>(ferry::optim::sgd{.lr = 0.1}, width, ferry::duplicates::mean{},
                      ferry::nonfinite::skip{});
  }
}

// Weights that are infinite and stay so: 0 times infinity must not come in by an option that is off.

template <class Rule>
void stays_infinite(const Rule& rule) {
  CAPTURE(std::string(Rule::name));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t width = 5;
  const std::vector<float> start{infinity, 1.0f, -infinity, 2.0f, 3.0f};
  auto table = make<ferry::device_space>("weights", 1, width, start);
  auto state = ferry::optim::make_state(rule, table);
  const auto grads =
      make<ferry::device_space>("grads", 1, width, std::vector<float>{0.5f, 0.5f, -0.25f, -0.5f, 0.0f});
  for (int step = 0; step < 3; ++step)
    ferry::step(exec_space{}, rule, table, state, std::vector<std::int64_t>{0}, grads, ferry::path::direct{})
        .wait();
  const auto now = take(table);
  CHECK(now[0] == infinity);
  CHECK(now[2] == -infinity);
  for (const std::size_t finite : {std::size_t{1}, std::size_t{3}, std::size_t{4}})
    CHECK(std::abs(now[finite] - start[finite]) < 1.0f);
  CHECK(now[1] < start[1]);
  CHECK(now[3] > start[3]);
}

TEST_CASE("an infinite weight stays infinite where no decay is asked for", "[optim][step]") {
  stays_infinite(ferry::optim::sgd{.lr = 0.1});
  stays_infinite(ferry::optim::sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  stays_infinite(ferry::optim::adagrad{});
  stays_infinite(ferry::optim::adam{});
  stays_infinite(ferry::optim::adamw{.weight_decay = 0.0});
  stays_infinite(ferry::optim::sparse_adam{});
  stays_infinite(ferry::optim::adadelta{});
  stays_infinite(ferry::optim::adamax{});
  stays_infinite(ferry::optim::nadam{});
  stays_infinite(ferry::optim::rmsprop{});
  stays_infinite(ferry::optim::rprop{});
  stays_infinite(ferry::optim::asgd{.lambd = 0.0});
  stays_infinite(ferry::optim::rowwise_adagrad{});
  stays_infinite(ferry::optim::lion{.weight_decay = 0.0});
}

}  // namespace ferry_test::step_spaces_test
