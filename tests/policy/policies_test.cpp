// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::policies_test {

namespace path = ferry::path;
namespace bounds = ferry::bounds;
namespace duplicates = ferry::duplicates;
using ferry::policies;

template <class... Ps>
using chosen = ferry::detail::chosen_policies<Ps...>;

template <class... Ps>
inline constexpr bool staged_skip_sum =
    std::is_same_v<typename chosen<Ps...>::template get<ferry::path_category, path::automatic>,
                   path::staged>&&
        std::is_same_v<typename chosen<Ps...>::template get<ferry::bounds_category, bounds::check>,
                       bounds::skip>&&
            std::is_same_v<typename chosen<Ps...>::template get<ferry::duplicates_category, duplicates::last>,
                           duplicates::sum>;

struct no_policy {};

TEST_CASE("policies are found in any order and any bundle", "[policies]") {
  STATIC_CHECK(staged_skip_sum<path::staged, bounds::skip, duplicates::sum>);
  STATIC_CHECK(staged_skip_sum<duplicates::sum, path::staged, bounds::skip>);
  STATIC_CHECK(staged_skip_sum<bounds::skip, duplicates::sum, path::staged>);
  STATIC_CHECK(staged_skip_sum<policies<path::staged, bounds::skip, duplicates::sum>>);
  STATIC_CHECK(staged_skip_sum<duplicates::sum, policies<bounds::skip, path::staged>>);
  STATIC_CHECK(staged_skip_sum<policies<bounds::skip>, policies<>, policies<path::staged>, duplicates::sum>);
  STATIC_CHECK(
      staged_skip_sum<policies<policies<path::staged>, policies<policies<bounds::skip>, duplicates::sum>>>);
  STATIC_CHECK(staged_skip_sum<const path::staged, bounds::skip&, const policies<duplicates::sum>&>);
  STATIC_CHECK_FALSE(staged_skip_sum<path::staged, bounds::skip>);
}

TEST_CASE("what is not asked for has the verb's default", "[policies]") {
  STATIC_CHECK(std::is_same_v<chosen<>::get<ferry::bounds_category, bounds::check>, bounds::check>);
  STATIC_CHECK(
      std::is_same_v<chosen<path::direct>::get<ferry::bounds_category, bounds::clamp>, bounds::clamp>);
  STATIC_CHECK(
      std::is_same_v<chosen<policies<>>::get<ferry::duplicates_category, duplicates::sum>, duplicates::sum>);
  STATIC_CHECK_FALSE(chosen<path::direct>::names<ferry::bounds_category>);
  STATIC_CHECK(chosen<path::direct>::names<ferry::path_category>);
}

TEST_CASE("repeated and unknown policies are noticed", "[policies]") {
  STATIC_CHECK(chosen<path::direct, bounds::skip>::facts::all_known);
  STATIC_CHECK(chosen<policies<>>::facts::all_known);
  STATIC_CHECK_FALSE(chosen<path::direct, int>::facts::all_known);
  STATIC_CHECK_FALSE(chosen<no_policy>::facts::all_known);
  STATIC_CHECK_FALSE(chosen<policies<bounds::skip, policies<no_policy>>>::facts::all_known);
  STATIC_CHECK(chosen<path::direct, bounds::skip>::at_most_one<ferry::path_category>);
  STATIC_CHECK_FALSE(chosen<path::direct, path::direct>::at_most_one<ferry::path_category>);
  STATIC_CHECK_FALSE(chosen<path::direct, policies<path::staged>>::at_most_one<ferry::path_category>);
}

TEST_CASE("a bundle does what its members do", "[policies]") {
  const exec_space exec;
  const auto table =
      make<ferry::mapped_space>("table", 4, 2, std::vector<float>{0, 1, 10, 11, 20, 21, 30, 31});
  const std::vector<std::int32_t> indices{-4, 2, 9};
  const std::vector<float> expected{0, 1, 20, 21, 30, 31};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 2);
  using clamped_and_staged = policies<bounds::clamp, path::staged>;
  ferry::gather(exec, table, indices, batch, clamped_and_staged{}).wait();
  CHECK(take(batch) == expected);
  ferry::init::zeros(exec, batch);
  ferry::gather(exec, table, indices, batch, path::direct{}, policies<bounds::clamp>{}).wait();
  CHECK(take(batch) == expected);
}

}  // namespace ferry_test::policies_test
