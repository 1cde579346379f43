// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <cmath>
#include <map>

/// The norm of the gradients of sharded tables over ranks, against plain loops in double over all batches.
namespace ferry_test::grad_norm_test {

namespace optim = ferry::optim;

namespace {

/// The sum of squares of the rows' summed gradients.
double summed_squares(const std::vector<std::int64_t>& rows, const float* grads) {
  std::map<std::int64_t, std::vector<double>> sums;
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto& row = sums[rows[p]];
    row.resize(width);
    for (std::size_t c = 0; c < width; ++c) row[c] += static_cast<double>(grads[p * width + c]);
  }
  double sum = 0;
  for (const auto& row : sums)
    for (const double x : row.second) sum += x * x;
  return sum;
}

bool agrees(double value, double expected) { return std::fabs(value - expected) <= 1e-12 * expected; }

}  // namespace

TEST_CASE("ranks have one norm of their gradients", "[distributed][grad_norm]") {
  const watchdog guard("norms over ranks");
  auto random = generator(51);
  const exec_space exec;
  for (const int ranks : {1, 3})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 60;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      const auto comm = group_of(ranks);
      const ferry::sharded_table<float, host, decltype(spread)> big("w", comm, rows, width, spread);
      const batches<float> batch(random, ranks, rows, 40);
      const auto numbers = values<float>(random, 5);
      const auto bias = tensor_of(numbers, 1);
      double dense = 0;
      for (const float x : numbers) dense += static_cast<double>(x) * static_cast<double>(x);
      const double expected = std::sqrt(summed_squares(batch.rows, batch.whole.data()) + dense);

      const auto whole_plan = ferry::make_plan(exec, batch.rows, big);
      CHECK(agrees(optim::grad_norm(exec, optim::sparse_grads(whole_plan, batch.whole), bias).wait(),
                   expected));

      const double limit = expected / 2, factor = limit / (expected + 1e-6);
      comm.run([&](int rank) {
        const auto plan = ferry::make_plan(exec, batch.indices_of(rank), big);
        const auto& grads = batch.values_of(rank);
        expect(agrees(optim::grad_norm(exec, optim::sparse_grads(plan, grads), bias).wait(), expected),
               "the norm");
        ferry::tensor<float, host> scaled("scaled", grads.rows(), width);
        ferry::copy(exec, grads, scaled).wait();
        auto copied = tensor_of(numbers, 1);
        auto total = optim::clip_grad_norm(exec, limit, optim::sparse_grads(plan, scaled), copied);
        expect(agrees(total.wait(), expected), "the norm before it is limited");
        for (std::size_t i = 0; i < scaled.size(); ++i)
          expect(scaled.data()[i] == static_cast<float>(static_cast<double>(grads.data()[i]) * factor) ||
                     std::fabs(scaled.data()[i] -
                               static_cast<float>(static_cast<double>(grads.data()[i]) * factor)) < 1e-6f,
                 "scaled gradients");
        expect(std::fabs(static_cast<double>(copied.data()[0]) - static_cast<double>(numbers[0]) * factor) <
                   1e-6,
               "scaled dense gradients");
        const double limited = optim::grad_norm(exec, optim::sparse_grads(plan, scaled), copied).wait();
        expect(std::fabs(limited - limit) < 1e-5 * limit, "the norm after it is limited");
      });
    });
}

TEST_CASE("norms over ranks refuse what the ranks do not have in common", "[distributed][grad_norm]") {
  const watchdog guard("refused norms over ranks");
  const exec_space exec;
  const auto comm = group_of(2);
  const ferry::sharded_table<float, host> big("w", comm, 9, width);
  const std::vector<std::int64_t> indices{1, 2, 1};
  const auto grads = tensor_of(std::vector<float>(3 * width, 1.0f), width);
  comm.run([&](int rank) {
    const auto plan = ferry::make_plan(exec, indices, big);
    const auto dense = tensor_of(std::vector<float>{rank == 0 ? 1.0f : 2.0f}, 1);
    const auto text = said<ferry::invalid_argument>(
        [&] { (void)optim::grad_norm(exec, optim::sparse_grads(plan, grads), dense).wait(); });
    expect(has(text, "must be equal on all ranks") && has(text, "on rank 1"), "dense gradients that differ");
    expect(optim::grad_norm(exec, optim::sparse_grads(plan, grads)).wait() > 0, "the group goes on");
  });
  const std::vector<std::int64_t> bad{1, 9, 1};
  comm.run([&](int rank) {
    const auto plan = ferry::make_plan(exec, rank == 1 ? bad : indices, big);
    const auto text = said<ferry::out_of_range>(
        [&] { (void)optim::grad_norm(exec, optim::sparse_grads(plan, grads)).wait(); });
    expect(has(text, "out of range") && has(text, "position 1"), "a plan with a bad index");
  });
  CHECK(said<ferry::protocol_error>([&] {
          comm.run([&](int rank) {
            const auto plan = ferry::make_plan(exec, indices, big);
            auto mine = tensor_of(std::vector<float>(3 * width, 1.0f), width);
            (void)optim::clip_grad_norm(exec, rank == 0 ? 1.0 : 2.0, optim::sparse_grads(plan, mine)).wait();
          });
        }) != "");
}

}  // namespace ferry_test::grad_norm_test
