// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/any_sharding.hpp"
#include "quantized.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

#include <ferry/distributed.hpp>
#include <ferry/io.hpp>

/// Sharded tables of quantized rows, next to ordinary ones.
namespace ferry_test {

namespace quantization = ferry::quantization;
using by_rows = quantization::per_row<quantization::e4m3>;
using host = ferry::mapped_space;
/// Kokkos::Threads serves the thread that initialised Kokkos only.
#ifdef KOKKOS_ENABLE_THREADS
using rank_space = Kokkos::Serial;
#else
using rank_space = exec_space;
#endif

inline ferry::communicator group_of(int ranks) {
  return ferry::communicator::threads(ranks, {.deadline = std::chrono::seconds(30)});
}

/// For threads of ranks, where Catch2's assertions must not be used: communicator::run throws it.
inline void expect(bool holds, const std::string& claim) {
  if (!holds) throw std::logic_error(claim);
}

/// Calls test(sharding) for four shardings of one type, which kernels know; with `All`, also for one whose owners the host
/// finds, and for replicated rows.
template <bool All, class Test>
void for_each_sharding(const Test& test) {
  using kind = any_sharding::kind;
  for (const kind chosen : {kind::cyclic, kind::block, kind::hashed, kind::table_wise}) {
    INFO("sharding " << static_cast<int>(chosen) << " of any_sharding");
    test(any_sharding{chosen});
  }
  if constexpr (All) {
    test(ferry::sharding::replicated{});
    test(host_sharding{{kind::hashed}});
  }
}

template <class Exec, class Sharded>
coded_bytes bytes_of_shards(const Exec& exec, const Sharded& big) {
  ferry::quantized_tensor<typename Sharded::quantization, host> read("read", big.rows(), big.width());
  ferry::copy(exec, big, read).wait();
  return bytes_of(read);
}

}  // namespace ferry_test
