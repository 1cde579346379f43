// SPDX-License-Identifier: Apache-2.0
// Small calls of every verb run in the calling thread of a host: no kernel wakes OpenMP's threads.
#include "support/parallel_regions.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

#if !defined(KOKKOS_ENABLE_CUDA)

namespace ferry_test::small_verbs_test {

using host_space = Kokkos::DefaultHostExecutionSpace;

/// The parallel regions of a call.
template <class Call>
int regions_of(const Call& call) {
  const int before = parallel_regions();
  call();
  return parallel_regions() - before;
}

TEST_CASE("small calls of verbs wake no threads", "[small]") {
  using namespace ferry;
  const host_space exec;
  if (!counts_parallel_regions()) SKIP("regions are counted with GCC's OpenMP");
  if (detail::concurrency_of(exec) == 1) SKIP("one thread");
  constexpr std::size_t rows = 300, width = 8, n = 64, bags = 16;
  tensor<float, mapped_space> table("table", rows, width);
  tensor<float, device_space> batch("batch", n, width), pooled("pooled", bags, width),
      wide("wide", n, 2 * width);
  tensor<double, device_space> doubles("doubles", n, width);
  tensor<float, device_space> factors("factors", n), of_factors("of factors", n);
  init::uniform(exec, table, -1, 1, 1);
  init::uniform(exec, batch, -1, 1, 2);
  init::uniform(exec, pooled, -1, 1, 3);
  init::uniform(exec, factors, 0, 1, 4);
  std::vector<std::int32_t> ids(n), offsets(bags + 1);
  for (std::size_t p = 0; p < n; ++p) ids[p] = static_cast<std::int32_t>(p * p % rows / 2);
  for (std::size_t b = 0; b <= bags; ++b) offsets[b] = static_cast<std::int32_t>(b * n / bags);
  const optim::adam rule{.lr = 0.01};
  auto state = optim::make_state(rule, table);
  auto per_row = optim::make_state(rule, table);
  auto caught_up = optim::make_state(rule, table);
  const auto plan = make_plan(exec, ids, rows);
  rowwise_int8_tensor<mapped_space> codes("codes", rows, width);
  quantize(exec, table, codes).wait();

  // A large kernel does, so the count can't be blind.
  tensor<float, device_space> large("large", 1 << 20);
  CHECK(regions_of([&] { init::zeros(exec, large); }) > 0);

  CHECK(regions_of([&] { static_cast<void>(make_plan(exec, ids, rows)); }) == 0);
  CHECK(regions_of([&] { static_cast<void>(unique(exec, ids, rows)); }) == 0);
  CHECK(regions_of([&] { gather(exec, table, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { gather(exec, table, ids, doubles).wait(); }) == 0);
  CHECK(regions_of([&] { gather(exec, table, plan, batch).wait(); }) == 0);
  CHECK(regions_of([&] { gather_unique(exec, table, plan, batch).wait(); }) == 0);
  CHECK(regions_of([&] { scatter(exec, table, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { scatter(exec, table, ids, batch, duplicates::first{}).wait(); }) == 0);
  CHECK(regions_of([&] { scatter_add(exec, table, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { scatter_add(exec, table, ids, batch, duplicates::sum_any_order{}).wait(); }) == 0);
  CHECK(regions_of([&] { step(exec, rule, table, state, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { step(exec, rule, table, state, plan, batch, nonfinite::skip{}).wait(); }) == 0);
  CHECK(regions_of([&] { step(exec, rule, table, per_row, ids, batch, step_count::per_row{}).wait(); }) == 0);
  CHECK(regions_of([&] { step(exec, rule, table, caught_up, ids, batch, step_count::catch_up{}).wait(); }) ==
        0);
  CHECK(regions_of([&] { catch_up(exec, rule, table, caught_up).wait(); }) == 0);
  tensor<float, device_space> dense_grads("dense grads", rows, width);
  init::zeros(exec, dense_grads);
  CHECK(regions_of([&] { step(exec, rule, table, state, dense_grads).wait(); }) == 0);
  CHECK(regions_of([&] { gather_bags(exec, table, ids, offsets, pooled).wait(); }) == 0);
  CHECK(regions_of([&] { gather_bags(exec, table, ids, offsets, pooled, factors).wait(); }) == 0);
  CHECK(regions_of([&] { gather_bags(exec, table, plan, offsets, pooled, pooling::max{}).wait(); }) == 0);
  CHECK(regions_of([&] { step_bags(exec, rule, table, state, ids, offsets, pooled).wait(); }) == 0);
  CHECK(regions_of([&] {
          step_bags(exec, rule, table, state, plan, offsets, pooled, pooling::mean{}).wait();
        }) == 0);
  CHECK(regions_of(
            [&] { step_bags(exec, rule, table, state, ids, offsets, pooled, pooling::max{}).wait(); }) == 0);
  CHECK(regions_of([&] {
          step_bags(exec, rule, table, state, ids, offsets, pooled, factors, of_factors).wait();
        }) == 0);
  CHECK(regions_of([&] { static_cast<void>(optim::grad_norm(exec, batch).wait()); }) == 0);
  CHECK(regions_of([&] {
          static_cast<void>(
              optim::clip_grad_norm(exec, 1.0, dense_grads, optim::sparse_grads(plan, batch)).wait());
        }) == 0);
  CHECK(regions_of([&] {
          static_cast<void>(optim::clip_grad_norm(exec, 1.0, optim::bag_grads(plan, offsets, pooled)).wait());
        }) == 0);
  CHECK(regions_of([&] { copy(exec, batch, doubles).wait(); }) == 0);
  const tensor_view<float, device_space> view = wide.view();
  CHECK(regions_of([&] {
          copy(exec, batch, Kokkos::subview(to_kokkos<2>(view), Kokkos::ALL, std::pair(0, 8))).wait();
        }) == 0);
  const Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace> columns("columns", n, width);
  CHECK(regions_of([&] { copy(exec, batch, columns).wait(); }) == 0);
  CHECK(regions_of([&] { init::uniform(exec, batch, -1, 1, 5); }) == 0);
  CHECK(regions_of([&] { gather(exec, codes, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { scatter(exec, codes, ids, batch).wait(); }) == 0);
  CHECK(regions_of([&] { scatter(exec, codes, plan, batch, duplicates::sum{}).wait(); }) == 0);
}

}  // namespace ferry_test::small_verbs_test

#endif
