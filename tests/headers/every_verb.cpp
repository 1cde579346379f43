// SPDX-License-Identifier: Apache-2.0
// One use of every verb and of every kind of argument, compiled and never run. It also serves to try a
// version of Kokkos of which only the headers are at hand.
#include <cstddef>
#include <cstdint>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>
#include <span>
#include <utility>
#include <vector>

namespace {

template <typename Table>
void move_rows(const Kokkos::DefaultExecutionSpace& exec, Table& table) {
  const std::vector<std::int64_t> indices{1, 2, 3};
  const std::span<const std::int64_t> some(indices);
  const auto count = static_cast<std::int64_t>(indices.size());
  ferry::tensor<float, ferry::device_space> batch("batch", count, table.width());

  ferry::gather(exec, table, indices, batch).wait();
  ferry::gather(exec, table, some, batch, ferry::path::direct{}, ferry::bounds::clamp{}).wait();
  ferry::scatter(exec, table, indices, batch).wait();
  ferry::scatter_add(exec, table, indices, batch).wait();

  auto plan = ferry::make_plan(exec, indices, table.rows());
  ferry::gather(exec, table, plan, batch).wait();
  ferry::tensor<std::byte, ferry::device_space> workspace(
      "workspace", ferry::plan_workspace_bytes(exec, count, table.rows()));
  plan = ferry::make_plan(exec, indices, table.rows(), workspace, ferry::bounds::skip{});

  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", table.rows(), table.width());
  ferry::quantize(exec, table, codes).wait();
  ferry::gather(exec, codes, indices, batch).wait();
  ferry::scatter(exec, codes, indices, batch, ferry::duplicates::sum{}).wait();
  ferry::dequantize(exec, codes, table).wait();

  const auto sgd = ferry::optim::sgd{.lr = 1e-2, .momentum = 0.9};
  auto momentum = ferry::optim::make_state(sgd, table);
  ferry::step(exec, sgd, table, momentum, plan, batch).wait();

  const auto adam = ferry::optim::adam{.lr = 1e-3, .betas = {0.9, 0.999}};
  auto moments = ferry::optim::make_state(adam, table);
  ferry::step(exec, adam, table, moments, plan, batch).wait();

  ferry::tensor<float, ferry::pageable_space> result("result", table.rows(), table.width());
  ferry::copy(exec, table, result).wait();
}

template <typename Table>
void take_parts(const Kokkos::DefaultExecutionSpace& exec, Table& table) {
  const std::vector<std::int64_t> indices{1, 2, 3};
  ferry::tensor<std::int32_t, ferry::device_space> ids("which", 8);
  ferry::tensor<float, ferry::device_space> batch("batch", 8, table.width());
  ferry::init::constant(exec, ids, 1);
  ferry::init::constant(exec, table.first(2), 0.5);

  ferry::gather(exec, table.rows_between(10, 20), indices, batch.first(3)).wait();
  ferry::gather(exec, std::as_const(table).first(50), ids.rows_between(2, 5), batch.first(5).first(3)).wait();
  ferry::scatter(exec, table.first(50), ids.first(3), std::as_const(batch).rows_between(3, 6)).wait();
  ferry::scatter_add(exec, table.first(50), ids.first(3), batch.first(3)).wait();
  ferry::copy(exec, table.first(8), batch.first(8)).wait();
  auto part = table.first(50);
  const auto sgd = ferry::optim::sgd{.lr = 1e-2, .momentum = 0.9};
  auto momentum = ferry::optim::make_state(sgd, part);
  const auto plan = ferry::make_plan(exec, ids.first(3), part.rows());
  ferry::step(exec, sgd, part, momentum, plan, batch.first(3)).wait();
  static_cast<void>(part.view());
  static_cast<void>(ferry::to_kokkos(part));

  ferry::gather(exec, table, plan.unique_rows(), batch.first(plan.unique_count())).wait();
  ferry::gather(exec, batch, plan.order(), batch.rows_between(3, 6)).wait();
  static_cast<void>(plan.rows_sorted().view());
  static_cast<void>(plan.segments().view());
  static_cast<void>(plan.inverse().view());
  const ferry::tensor<double, ferry::pinned_space> wide =
      ferry::gather<ferry::pinned_space, double>(exec, table, indices).get();
  const float same_space = table.clone(exec).get().data() != nullptr ? 1.0F : 0.0F;
  static_cast<void>(same_space);
  static_cast<void>(ferry::clone(exec, part).get());
  static_cast<void>(ferry::clone<ferry::pageable_space>(exec, batch.view(), "saved").get());
}

void order_instances(const Kokkos::DefaultExecutionSpace& exec) {
  const Kokkos::DefaultExecutionSpace second;
  const Kokkos::DefaultHostExecutionSpace host;
  ferry::tensor<float, ferry::mapped_space> source("from", 4, 4);
  ferry::tensor<float, ferry::mapped_space> target("to", 4, 4);
  auto ticket = ferry::copy(exec, source, target);
  auto future = ferry::clone(exec, source);
  ferry::after(exec, second);
  ferry::after(host, exec, ticket, future);
  ferry::after(exec, host);
  target(1, 2) = source(3, 0) + target.first(2)(0, 0) + std::as_const(target)(1, 1);
}

}  // namespace

void every_verb() {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::tensor<float, ferry::mapped_space> mapped("mapped", 100, 16);
  ferry::tensor<float, ferry::pinned_space> pinned("pinned", 100, 16);
  ferry::tensor<float, ferry::device_space, ferry::extents<ferry::dyn, 16>> device("device", 100);
  ferry::init::uniform(exec, mapped, -0.5F, 0.5F, 42);
  ferry::init::normal(exec, pinned, 0.0F, 1.0F, 42);
  ferry::init::zeros(exec, device);
  move_rows(exec, mapped);
  move_rows(exec, pinned);
  move_rows(exec, device);
  take_parts(exec, mapped);
  take_parts(exec, device);
  order_instances(exec);

  Kokkos::View<float**, Kokkos::LayoutRight> view("view", 100, 16);
  ferry::copy(exec, mapped, view).wait();
  auto kokkos = ferry::to_kokkos(device);
  static_cast<void>(kokkos);

  std::vector<float> user(1600);
  auto adopted = ferry::adopt<ferry::pinned_space>(std::span<float>(user), 100, 16);
  move_rows(exec, adopted);

  const std::vector<std::int64_t> indices{1, 2, 3};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 16);
  ferry::gather(exec, adopted, indices, batch, ferry::path::staged{}, ferry::bounds::check{}).wait();
}
