// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizers.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

/// Trajectories of step in every type of weights, state, gradients and indices, by each duplicates policy, against the oracle in
/// double. Other rules have PyTorch's trajectories in golden_test.cpp and the same bits everywhere in bits_test.cpp.
namespace ferry_test::trajectory_test {

reference::adam_options oracle_of(const ferry::optim::adam& rule) {
  return {rule.lr, rule.betas[0], rule.betas[1], rule.eps, rule.weight_decay, rule.maximize};
}

/// How exactly a type holds a number: relative to it, and near zero.
template <class T>
struct precision {
  static constexpr double relative = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2.0;
  static constexpr double absolute = 0.0;
};
template <>
struct precision<ferry::half_t> {
  static constexpr double relative = 0x1p-11;
  static constexpr double absolute = 0x1p-25;
};
template <>
struct precision<ferry::bhalf_t> {
  static constexpr double relative = 0x1p-8;
  static constexpr double absolute = 0.0;
};

template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> wide(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if constexpr (std::is_same_v<T, double>)
      wide[i] = values[i];
    else
      wide[i] = static_cast<double>(static_cast<float>(values[i]));
  return wide;
}

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

/// A batch's gradients as the policy combines them, in double: one gradient for each row that the batch names.
template <class Duplicates>
struct combined_batch {
  std::vector<std::size_t> rows;
  std::vector<double> gradients;

  template <class Index>
  combined_batch(const std::vector<Index>& chosen, const std::vector<double>& grads, std::size_t width) {
    std::vector<double> counts;
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      const auto row = static_cast<std::size_t>(chosen[p]);
      const auto place = std::find(rows.begin(), rows.end(), row);
      const auto index = static_cast<std::size_t>(place - rows.begin());
      const bool fresh = place == rows.end();
      if (fresh) {
        rows.push_back(row);
        counts.push_back(0.0);
        gradients.resize(gradients.size() + width);
      }
      counts[index] += 1.0;
      for (std::size_t j = 0; j < width; ++j) {
        double& gradient = gradients[index * width + j];
        const double value = grads[p * width + j];
        if (std::is_same_v<Duplicates, ferry::duplicates::last> ||
            (fresh && std::is_same_v<Duplicates, ferry::duplicates::first>))
          gradient = value;
        else if (Duplicates::combines || fresh)
          gradient += value;
      }
    }
    if (std::is_same_v<Duplicates, ferry::duplicates::mean>)
      for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] /= counts[i / width];
  }
};

template <class Setting>
class trajectory {
  using Rule = ferry::optim::adam;
  using T = typename Setting::element;
  using state = typename Setting::state;
  using grad = typename Setting::grad;
  using index = typename Setting::index;

  static constexpr bool in_double =
      std::is_same_v<T, double> || std::is_same_v<state, double> || std::is_same_v<grad, double>;
  static constexpr double computed = in_double ? 0x1p-53 : 0x1p-24;
  static constexpr std::size_t row_count = 23;

 public:
  trajectory(const Rule& rule, std::size_t width, std::mt19937_64& random)
      : rule_(rule),
        width_(width),
        random_(random),
        table_("table", row_count, width),
        free_(row_count, width) {
    std::vector<T> start(row_count * width);
    std::uniform_real_distribution<float> any(-1.0f, 1.0f);
    for (auto& weight : start) weight = static_cast<T>(any(random));
    put(table_, start);
    free_.weight = widened(start);
  }

  void run(int steps) {
    auto moments = ferry::optim::make_state<typename Setting::state_space, state>(rule_, table_);
    for (int s = 1; s <= steps; ++s) {
      INFO("step " << s << ", width " << width_);
      one_step(moments, s);
      REQUIRE(moments.steps() == s);
    }
    // Only where nothing is rounded to 16 bits on the way do the paths stay together.
    if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<state>) {
      const bool all_double = std::is_same_v<T, double> && std::is_same_v<state, double>;
      const double tolerance = all_double ? 1e-10 : 1e-4;
      const auto now = widened(take(table_));
      double worst = 0.0;
      for (std::size_t i = 0; i < now.size(); ++i)
        worst = std::max(worst, std::fabs(now[i] - free_.weight[i]) / (1.0 + std::fabs(free_.weight[i])));
      CHECK(worst < tolerance);
    }
  }

 private:
  template <class State>
  void one_step(State& moments, int number) {
    constexpr bool repeats = Setting::duplicates::needs_plan && !Setting::duplicates::forbids;
    const std::size_t n = 1 + random_() % (repeats ? 40 : row_count - 1);
    const auto chosen =
        repeats ? indices<index>(random_, n, row_count) : unique_indices<index>(random_, n, row_count);
    auto gradients = values<grad>(random_, n * width_);
    for (auto& gradient : gradients) gradient = static_cast<grad>(static_cast<float>(gradient) / 8.0f);
    const combined_batch<typename Setting::duplicates> batch(chosen, widened(gradients), width_);

    reference::trained_table expected(row_count, width_);
    expected.weight = widened(take(table_));
    expected.first = widened(take(moments.field(0)));
    expected.second = widened(take(moments.field(1)));
    const auto before = expected;
    for (std::size_t r = 0; r < batch.rows.size(); ++r) {
      reference::step_row(oracle_of(rule_), expected, batch.rows[r], &batch.gradients[r * width_], number);
      reference::step_row(oracle_of(rule_), free_, batch.rows[r], &batch.gradients[r * width_], number);
    }

    const exec_space exec;
    const auto device_grads = make<typename Setting::grad_space>("grads", n, width_, gradients);
    using path = typename Setting::path;
    using duplicates = typename Setting::duplicates;
    if (number % 2 == 0) {
      const auto plan = ferry::make_plan(exec, chosen, row_count);
      ferry::step(exec, rule_, table_, moments, plan, device_grads, path{}, duplicates{}).wait();
    } else {
      ferry::step(exec, rule_, table_, moments, chosen, device_grads, duplicates{}, path{}).wait();
    }

    std::vector<double> drive(row_count * width_, -1.0);
    for (std::size_t r = 0; r < batch.rows.size(); ++r)
      for (std::size_t j = 0; j < width_; ++j)
        drive[batch.rows[r] * width_ + j] =
            std::fabs(batch.gradients[r * width_ + j]) +
            rule_.weight_decay * std::fabs(before.weight[batch.rows[r] * width_ + j]);
    // A step's result may be off by one rounding to its type and a few roundings of the arithmetic.
    const auto slack = [&](std::size_t i) {
      return std::fabs(before.weight[i]) + std::fabs(expected.weight[i] - before.weight[i]) + 10.0 * rule_.lr;
    };
    check<T>("weight", take(table_), expected.weight, drive, slack);
    check<state>("state 0", take(moments.field(0)), expected.first, drive,
                 [&](std::size_t i) { return std::fabs(before.first[i]) + drive[i]; });
    check<state>("state 1", take(moments.field(1)), expected.second, drive,
                 [&](std::size_t i) { return std::fabs(before.second[i]) + drive[i] * drive[i]; });
  }

  template <class Stored, class Slack>
  void check(const char* label, const std::vector<Stored>& stored, const std::vector<double>& expected,
             const std::vector<double>& drive, const Slack& slack) const {
    INFO(label);
    const auto actual = widened(stored);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const bool touched = drive[i] >= 0.0;
      const double tolerance = !touched ? 0.0
                                        : 1.01 * precision<Stored>::relative * std::fabs(expected[i]) +
                                              precision<Stored>::absolute + 64.0 * computed * slack(i);
      if (!(std::fabs(actual[i] - expected[i]) <= tolerance)) {
        CAPTURE(i / width_, i % width_, touched, actual[i], expected[i], tolerance);
        FAIL("off");
      }
    }
  }

  Rule rule_;
  std::size_t width_;
  std::mt19937_64& random_;
  ferry::tensor<T, typename Setting::space> table_;
  reference::trained_table free_;
};

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
    trajectory<setting>(rules[r], widths[(random() % 2) * 4 + r % 4], random).run(50);
  }
}

}  // namespace ferry_test::trajectory_test
