// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace ferry_test::step_spaces_test {

namespace {

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

}  // namespace

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

}  // namespace ferry_test::step_spaces_test
