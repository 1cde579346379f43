// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/error.hpp>

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

/// outputs[i] = replicas[i](inputs[i]), all at once: each on a thread that acts for a rank of this process,
/// so replicas may call collective verbs. As torch.nn.parallel.parallel_apply.
///
///   comm      the group
///   replicas  one function for each rank of this process, in the order of the ranks: a std::vector, say
///   inputs    one input for each of them
///
/// Returns a std::vector of the results in that order; nothing if the replicas return nothing. Throws
/// invalid_argument unless there are as many replicas and inputs as ranks of this process; exceptions of the
/// replicas as communicator::run does.
template <class Replicas, class Inputs>
auto parallel_apply(const communicator& comm, Replicas&& replicas, Inputs&& inputs) {
  using result = std::decay_t<decltype(replicas[std::size_t{}](inputs[std::size_t{}]))>;
  const auto first = static_cast<std::size_t>(comm.group()->first_local());
  const auto ranks = static_cast<std::size_t>(comm.group()->local_count());
  const auto functions = static_cast<std::size_t>(std::size(replicas));
  const auto count = static_cast<std::size_t>(std::size(inputs));
  if (functions != ranks || count != ranks)
    throw invalid_argument(detail::joined("ferry::parallel_apply: ", functions, " replicas and ", count,
                                          " inputs were given for the ", ranks, " ranks of this process"));
  if constexpr (std::is_void_v<result>) {
    comm.run([&](int rank) {
      const std::size_t i = static_cast<std::size_t>(rank) - first;
      replicas[i](inputs[i]);
    });
  } else {
    std::vector<std::optional<result>> results(ranks);
    comm.run([&](int rank) {
      const std::size_t i = static_cast<std::size_t>(rank) - first;
      results[i].emplace(replicas[i](inputs[i]));
    });
    std::vector<result> outputs;
    outputs.reserve(ranks);
    for (auto& result_of_rank : results) outputs.push_back(std::move(*result_of_rank));
    return outputs;
  }
}

}  // namespace ferry
