// SPDX-License-Identifier: Apache-2.0
#include "rows/conversion.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

/// Trajectories of step in every type of weights, state, gradients and indices, by each duplicates policy: the bits of the rule
/// applied element by element in the type of the step, whose results are rounded once. golden_test.cpp compares the rules
/// with PyTorch, bits_test.cpp takes all of them to every path.
namespace ferry_test::trajectory_test {

/// The types of one trajectory.
template <class T, class State, class Grad, class Index, class Space, class StateSpace, class GradSpace,
          class Path, class Duplicates>
struct setting {
  using element = T;
  using state = State;
  using grad = Grad;
  using index = Index;
  using space = Space;
  using state_space = StateSpace;
  using grad_space = GradSpace;
  using path = Path;
  using duplicates = Duplicates;
};

/// The gradients of a row as the policy combines them, in the order of the positions.
template <class Duplicates, class Compute, class Grad>
std::vector<Compute> combined_in_order(const std::vector<Grad>& gradients, std::size_t width,
                                       const std::vector<std::size_t>& positions) {
  std::vector<Compute> sum;
  for (std::size_t c = 0; c < width; ++c) {
    const auto value = [&](std::size_t p) { return static_cast<Compute>(number(gradients[p * width + c])); };
    constexpr bool takes_last = std::is_same_v<Duplicates, ferry::duplicates::last>;
    Compute element = value(takes_last ? positions.back() : positions.front());
    if constexpr (Duplicates::combines)
      for (std::size_t k = 1; k < positions.size(); ++k) element += value(positions[k]);
    if constexpr (std::is_same_v<Duplicates, ferry::duplicates::mean>)
      element /= static_cast<Compute>(positions.size());
    sum.push_back(element);
  }
  return sum;
}

template <class Setting>
void train(const ferry::optim::adam& rule, std::size_t width, std::mt19937_64& random, int steps) {
  using T = typename Setting::element;
  using field_type = typename Setting::state;
  using grad = typename Setting::grad;
  using index = typename Setting::index;
  using path = typename Setting::path;
  using duplicates = typename Setting::duplicates;
  constexpr bool in_double =
      std::is_same_v<T, double> || std::is_same_v<field_type, double> || std::is_same_v<grad, double>;
  using compute = std::conditional_t<in_double, double, float>;
  constexpr bool repeats = duplicates::needs_plan && !duplicates::forbids;
  constexpr std::size_t rows = 23;
  const exec_space exec;
  std::uniform_real_distribution<float> any(-1.0f, 1.0f);
  std::vector<T> weights;
  for (std::size_t i = 0; i < rows * width; ++i) weights.push_back(static_cast<T>(any(random)));
  std::vector<field_type> first(rows * width, field_type(0)), second = first;
  auto table = make<typename Setting::space>("table", rows, width, weights);
  auto state = ferry::optim::make_state<typename Setting::state_space, field_type>(rule, table);
  for (int s = 1; s <= steps; ++s) {
    const std::size_t n = 1 + random() % (repeats ? 40 : rows - 1);
    const auto chosen = repeats ? indices<index>(random, n, rows) : unique_indices<index>(random, n, rows);
    auto gradients = values<grad>(random, n * width);
    for (auto& gradient : gradients) gradient = static_cast<grad>(static_cast<float>(gradient) / 8.0f);
    std::map<std::size_t, std::vector<std::size_t>> named;
    for (std::size_t p = 0; p < n; ++p) named[static_cast<std::size_t>(chosen[p])].push_back(p);
    const auto update = rule.coefficients<compute>(s);
    for (const auto& [row, positions] : named) {
      const auto gradient = combined_in_order<duplicates, compute>(gradients, width, positions);
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t i = row * width + c;
        auto weight = static_cast<compute>(number(weights[i]));
        compute fields[2] = {static_cast<compute>(number(first[i])), static_cast<compute>(number(second[i]))};
        update.apply(weight, gradient[c], fields);
        weights[i] = converted_once<T>(weight);
        first[i] = converted_once<field_type>(fields[0]);
        second[i] = converted_once<field_type>(fields[1]);
      }
    }
    const auto grads = make<typename Setting::grad_space>("grads", n, width, gradients);
    if (s % 2 == 0)
      ferry::step(exec, rule, table, state, ferry::make_plan(exec, chosen, rows), grads, path{}, duplicates{})
          .wait();
    else
      ferry::step(exec, rule, table, state, chosen, grads, duplicates{}, path{}).wait();
    INFO("step " << s << ", width " << width);
    REQUIRE(state.steps() == s);
    REQUIRE(same_values(take(table), weights));
    REQUIRE(same_values(take(state.field(0)), first));
    REQUIRE(same_values(take(state.field(1)), second));
  }
}

/// Takes turns through a list of types.
template <std::size_t I, class... Ts>
using turn = std::tuple_element_t<I % sizeof...(Ts), std::tuple<Ts...>>;
template <std::size_t I>
using space_turn =
    turn<I, ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space>;

/// The path nearest to the wanted one that compiles for these spaces, and runs wherever one does.
template <class Wanted, class Space, class StateSpace, class GradSpace>
consteval auto path_for() {
  constexpr bool pageable = std::is_same_v<Space, ferry::pageable_space> ||
                            std::is_same_v<StateSpace, ferry::pageable_space> ||
                            std::is_same_v<GradSpace, ferry::pageable_space>;
  constexpr bool chain = Space::is_host_accessible == StateSpace::is_host_accessible &&
                         (Space::is_host_accessible || GradSpace::is_host_accessible);
  constexpr bool chosen_staged = pageable || std::is_same_v<Space, ferry::pinned_space>;
  constexpr bool on_host = ferry::HostExecutionSpace<exec_space>;
  if constexpr (std::is_same_v<Wanted, ferry::path::direct> && pageable && chain && !on_host)
    return ferry::path::staged{};
  else if constexpr (!chain && (std::is_same_v<Wanted, ferry::path::staged> || chosen_staged))
    return ferry::path::direct{};
  else
    return Wanted{};
}

/// Point (i, j) of element types x gradient types; the other axes take turns.
template <class T, std::size_t I, class Grad, std::size_t J>
struct point {
  using space = space_turn<I + J>;
  using state_space = space_turn<I + 2 * J>;
  using grad_space = space_turn<2 * I + J>;
  using wanted = turn<I + J, ferry::path::direct, ferry::path::staged, ferry::path::automatic>;
  using type =
      setting<T, turn<I + 2 * J, float, double, ferry::half_t>, Grad,
              turn<I + J, std::int64_t, std::int32_t, std::uint32_t, std::uint64_t>, space, state_space,
              grad_space, decltype(path_for<wanted, space, state_space, grad_space>()),
              turn<I + 4 * J, ferry::duplicates::sum, ferry::duplicates::mean, ferry::duplicates::last,
                   ferry::duplicates::first, ferry::duplicates::assume_unique, ferry::duplicates::reject>>;
};

constexpr std::array<std::size_t, 8> widths{1, 3, 4, 31, 64, 65, 128, 200};

using grads = std::tuple<float, ferry::half_t, double>;
template <class Point>
using setting_of = typename point<
    std::tuple_element_t<at<0, Point>::value, std::tuple<float, double, ferry::half_t, ferry::bhalf_t>>,
    at<0, Point>::value, std::tuple_element_t<at<1, Point>::value, grads>, at<1, Point>::value>::type;
using elements_by_number = decltype(axis<hana::size_t<0>, hana::size_t<1>, hana::size_t<2>, hana::size_t<3>>);
using grads_by_number = decltype(axis<hana::size_t<0>, hana::size_t<1>, hana::size_t<2>>);
using matrix = product<elements_by_number, grads_by_number>;

const std::array rules{
    ferry::optim::adam{.lr = 0.01}, ferry::optim::adam{.lr = 0.02, .betas = {0.8, 0.99}, .eps = 1e-4},
    ferry::optim::adam{.lr = 0.005, .weight_decay = 0.01},
    ferry::optim::adam{.lr = 0.01, .betas = {0.9, 0.0}, .eps = 1e-2},
    ferry::optim::adam{.lr = 0.01, .betas = {0.5, 0.9}, .weight_decay = 0.02, .maximize = true}};

TEMPLATE_LIST_TEST_CASE("steps of adam in every type follow the documented formulas", "[optim][adam]",
                        matrix) {
  using setting = setting_of<TestType>;
  if (std::is_same_v<typename setting::path, ferry::path::direct> &&
      !direct_runs<typename setting::space, typename setting::state_space, typename setting::grad_space>())
    SKIP("this device has no access to pageable memory");
  auto random = generator(10 * at<0, TestType>::value + at<1, TestType>::value);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    CAPTURE(r);
    train<setting>(rules[r], widths[(random() % 2) * 4 + r % 4], random, 12);
  }
}

}  // namespace ferry_test::trajectory_test
