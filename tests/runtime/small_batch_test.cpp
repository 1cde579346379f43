// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <set>

/// The threads that run a host's kernels, and the view that Kokkos Tools have of them, on both sides of
/// tuning_numbers::caller_bytes.
namespace ferry_test::small_batch_test {

using host_space = Kokkos::DefaultHostExecutionSpace;

/// Notes the thread of each iteration, and how often an iteration runs.
struct noting {
  std::thread::id* threads;
  int* visits;
  std::int64_t bytes;

  void operator()(std::int64_t i) const {
    threads[i] = std::this_thread::get_id();
    ++visits[i];
  }
};
struct of_known_bytes : noting {
  [[nodiscard]] std::int64_t bytes_each() const { return bytes; }
};
struct of_unknown_bytes : noting {};

std::map<std::string, int>* labels = nullptr;
void note_label(const char* label, std::uint32_t, std::uint64_t*) { ++(*labels)[label]; }

struct listener {
  listener() {
    labels = &kernels;
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(note_label);
    Kokkos::Tools::Experimental::set_begin_parallel_scan_callback(note_label);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
    Kokkos::Tools::Experimental::set_begin_parallel_scan_callback(nullptr);
    labels = nullptr;
  }
  std::map<std::string, int> kernels;
};

/// The threads of a kernel of `count` iterations, each of which runs once.
template <class Functor>
std::set<std::thread::id> threads_of(std::int64_t count, std::int64_t bytes) {
  const auto n = static_cast<std::size_t>(count);
  std::vector<std::thread::id> threads(n);
  std::vector<int> visits(n, 0);
  listener tool;
  ferry::detail::launch(host_space(), "ferry_test::noting", count,
                        Functor{{threads.data(), visits.data(), bytes}});
  CHECK(tool.kernels == std::map<std::string, int>{{"ferry_test::noting", 1}});
  CHECK(std::all_of(visits.begin(), visits.end(), [](int times) { return times == 1; }));
  return {threads.begin(), threads.end()};
}

/// The labels of a step with duplicates on n rows of `width` elements.
std::set<std::string> labels_of_step(std::size_t n, std::size_t width) {
  const host_space exec;
  ferry::tensor<float, ferry::pageable_space> table("table", n, width);
  ferry::tensor<float, ferry::pageable_space> grads("grads", n, width);
  std::vector<float> before(n * width);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i % 97) / 8.0f;
  std::copy(before.begin(), before.end(), table.data());
  std::copy(before.begin(), before.end(), grads.data());
  std::vector<std::int32_t> indices(n);
  for (std::size_t p = 0; p < n; ++p) indices[p] = static_cast<std::int32_t>(p * p % n);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  listener tool;
  ferry::step(exec, ferry::optim::adam{}, table, state, indices, grads).wait();
  std::set<std::string> names;
  for (const auto& [name, times] : tool.kernels) names.insert(name);
  return names;
}

TEST_CASE("a small kernel of a host runs once in the calling thread, a large one on all threads", "[small]") {
  const auto threads = static_cast<std::size_t>(ferry::detail::concurrency_of(host_space()));
  const std::int64_t most = ferry::host::tuning_numbers{}.caller_bytes;
  const std::set<std::thread::id> caller{std::this_thread::get_id()};
  CHECK(threads_of<of_known_bytes>(1, 1) == caller);
  CHECK(threads_of<of_known_bytes>(1000, 1) == caller);
  CHECK(threads_of<of_known_bytes>(most / 64, 64) == caller);
  CHECK(threads_of<of_known_bytes>(most / 64 + 1, 64).size() == threads);
  CHECK(threads_of<of_known_bytes>(1000, most).size() == threads);
  CHECK(threads_of<of_unknown_bytes>(1000, 1).size() == threads);
}

#ifdef KOKKOS_ENABLE_OPENMP
TEST_CASE("a kernel within a parallel region uses the instance's threads", "[small]") {
  if (ferry::detail::concurrency_of(Kokkos::OpenMP()) == 1) SKIP("one thread");
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(2);
  std::vector<std::thread::id> threads(1000);
  std::vector<int> visits(threads.size(), 0);
#pragma omp parallel num_threads(1)
  ferry::detail::launch(Kokkos::OpenMP(), "ferry_test::noting", 1000,
                        of_unknown_bytes{{threads.data(), visits.data(), 1}});
  omp_set_max_active_levels(levels);
  CHECK(std::all_of(visits.begin(), visits.end(), [](int times) { return times == 1; }));
  CHECK(std::set<std::thread::id>(threads.begin(), threads.end()).size() > 1);
}
#endif

TEST_CASE("kernels of 8-bit rows, bags and norms say how many bytes they touch", "[small]") {
  namespace kernels = ferry::kernels;
  using list = kernels::index_rows<std::int32_t, ferry::bounds::check>;
  using records = ferry::quantization::rowwise_int8;
  kernels::encode_rows<records, float, kernels::deciding_positions, kernels::host_tile> quantize{};
  quantize.width = 100;
  CHECK(quantize.bytes_each() == 900);  // a row is read twice
  kernels::decode_rows<kernels::coded_memory<records>, float, list, true> dequantize{};
  dequantize.width = 100;
  CHECK(dequantize.bytes_each() == 500);
  dequantize.width = 100000;  // in blocks
  CHECK(dequantize.bytes_each() == 5 * decltype(dequantize)::host_block);
  using table = kernels::pooled_table<float>;
  using pool = kernels::pool_rows<float, ferry::pooling::sum, table, list, std::int64_t, void, float, void>;
  kernels::bag_list<std::int64_t> bags{};
  bags.bags = 10;
  bags.positions = 35;
  pool reports{};
  reports.bags = bags;
  reports.terms.width = 8;
  CHECK(reports.bytes_each() == 4 * 32 + 32);  // 3.5 rows of a bag, rounded up, and the pooled one
  reports.bags.bags = 0;
  CHECK(reports.bytes_each() == 32 + 32);
  CHECK(kernels::sum_lane<kernels::lower_sums>::bytes_each() == 64 * 24);
  CHECK(kernels::scale_values<double>::bytes_each() == 16);
}

TEST_CASE("a small step has the labels of a large one", "[small]") {
  const auto small = labels_of_step(3, 4);
  for (const char* label : {"ferry::make_plan::resolve", "ferry::make_plan::sum",
                            "ferry::make_plan::segments", "ferry::step::direct"}) {
    CAPTURE(label);
    CHECK(small.count(label) == 1);
    CHECK(labels_of_step(20000, 4).count(label) == 1);
  }
}

}  // namespace ferry_test::small_batch_test
