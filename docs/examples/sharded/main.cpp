// SPDX-License-Identifier: Apache-2.0
// Trains a table on one rank and on four: the same bits.
#include <ferry/distributed.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int rows = 5000, width = 16, batch = 64, steps = 100;
using table_type = ferry::sharded_table<float, ferry::mapped_space>;
using batch_type = ferry::tensor<float, ferry::mapped_space>;

void train(int ranks, batch_type& result) {
  const Kokkos::DefaultExecutionSpace exec;
  const auto comm = ferry::communicator::threads(ranks);
  table_type table("embeddings", comm, rows, width);
  ferry::init::uniform(exec, table, -0.1, 0.1, 42);
  const ferry::optim::adam adam{.lr = 0.01};
  auto state = ferry::optim::make_state(adam, table);
  comm.run([&](int rank) {
    const int mine = batch / ranks;  // samples of a step that this rank works on
    std::vector<std::int64_t> samples(static_cast<std::size_t>(mine));
    batch_type x("x", mine, width);
    for (int s = 0; s < steps; ++s) {
      for (int i = 0; i < mine; ++i)
        samples[static_cast<std::size_t>(i)] = (s * 7919 + (rank * mine + i) * 104729) % rows;
      ferry::gather(exec, table, samples, x).wait();
      for (std::size_t e = 0; e < x.size(); ++e) x.data()[e] -= 1.0f;  // the gradient of (x - 1)^2 / 2
      ferry::step(exec, adam, table, state, samples, x).wait();
    }
  });
  ferry::copy(exec, table, result).wait();
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  batch_type first("one", rows, width), four("four", rows, width);
  train(1, first);
  train(4, four);
  const bool same = std::memcmp(first.data(), four.data(), first.size() * sizeof(float)) == 0;
  std::printf("4 ranks give %s bits as 1\n", same ? "the same" : "OTHER");
  return same ? 0 : 1;
}
