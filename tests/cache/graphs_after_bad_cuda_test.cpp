// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/quantized.hpp>

#include <cuda_runtime.h>
#include <Kokkos_Core.hpp>

/// A graph of a verb is launched good, bad, good, good, bad, good: each bad index is reported once, nothing is written
/// for it, and the next launch writes as if it had not been. Verbs that consist of several verbs above all.
namespace ferry_test::graphs_after_bad_cuda_test {

namespace quantization = ferry::quantization;
using ferry::device_space;
using ferry::mapped_space;
using ferry::pinned_space;
using list_type = ferry::tensor<std::int32_t, device_space, ferry::extents<ferry::dyn>>;
using columns = Kokkos::View<float* [3], Kokkos::LayoutLeft, Kokkos::Cuda>;

constexpr std::size_t width = 64;
const ferry::optim::sgd rule{.lr = 0.5};
const ferry::duplicates::assume_unique distinct{};

void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

void append(std::vector<std::byte>& bytes_so_far, const void* data, std::size_t bytes) {
  const std::size_t before = bytes_so_far.size();
  bytes_so_far.resize(before + bytes);
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(bytes_so_far.data() + before, data, bytes, cudaMemcpyDefault));
}
template <class Array>
std::vector<std::byte> bytes_of(const Array& array) {
  std::vector<std::byte> content;
  if constexpr (requires { array.scales(); }) {
    append(content, array.codes().data(), array.codes().size() * sizeof(*array.codes().data()));
    append(content, array.scales().data(), array.scales().size() * sizeof(*array.scales().data()));
  } else if constexpr (requires { array.records(); }) {
    append(content, array.records().data(), array.records().size());
  } else {
    append(content, array.data(), array.size() * sizeof(*array.data()));
  }
  return content;
}

template <class Array>
Array array_of(const char* label, std::size_t rows) {
  if constexpr (std::is_same_v<Array, columns>)
    return Array(label, rows);
  else
    return Array(label, rows, width);
}
template <class Array>
std::size_t rows_of(const Array& array) {
  return static_cast<std::size_t>(ferry::make_ref(array).rows());
}
template <class Array>
void fill(const exec_space& exec, Array& array, std::uint64_t seed) {
  constexpr bool quantized = requires { typename Array::quantization; };
  ferry::tensor<float, device_space> start("start", 0, 0);
  if constexpr (quantized)
    start = ferry::tensor<float, device_space>("start", array.rows(), width);
  else
    start = ferry::tensor<float, device_space>("start", rows_of(array),
                                               std::is_same_v<Array, columns> ? 3 : width);
  ferry::init::uniform(exec, start, -1.0, 1.0, seed);
  if constexpr (quantized)
    ferry::quantize(exec, start, array).wait();
  else
    ferry::copy(exec, start, array).wait();
}
template <class Table>
auto state_of(Table& table) {
  if constexpr (std::is_same_v<Table, columns>)
    return 0;
  else
    return ferry::optim::make_state(rule, table);
}

/// Distinct rows; one beyond the table if `bad`.
void name_rows(list_type& list, std::mt19937_64& random, std::size_t rows, bool bad) {
  std::vector<std::int32_t> every(rows);
  std::iota(every.begin(), every.end(), 0);
  std::shuffle(every.begin(), every.end(), random);
  every.resize(list.size());
  if (bad) every[every.size() / 2] = static_cast<std::int32_t>(rows);
  check(cudaDeviceSynchronize());
  put(list, every);
}

struct stream_of_test {
  cudaStream_t handle = nullptr;
  stream_of_test() { check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  ~stream_of_test() { static_cast<void>(cudaStreamDestroy(handle)); }
};

/// `verb` runs once outside of the graph, is captured and launched. expect(bad) looks at each launch.
template <class Verb, class Expect>
void launch_graph(const exec_space& exec, cudaStream_t stream, const Verb& verb,
                  const std::function<void(bool)>& set, const Expect& expect) {
  set(false);
  verb().wait();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  ferry::ticket ticket = verb();
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream, &captured));
  cudaGraphExec_t graph = nullptr;
  check(cudaGraphInstantiate(&graph, captured, 0));
  check(cudaGraphDestroy(captured));
  int launch = 0;
  for (const bool bad : {false, true, false, false, true, false}) {
    CAPTURE(launch++, bad);
    set(bad);
    check(cudaGraphLaunch(graph, stream));
    bool finding = false;
    try {
      ticket.wait();
    } catch (const ferry::out_of_range&) {
      finding = true;
    }
    exec.fence("launch");
    CHECK(finding == bad);
    expect(bad);
  }
  check(cudaGraphExecDestroy(graph));
}

/// A verb that writes to rows of a table, next to a twin that has the good batches alone, outside of graphs.
template <class Table, class Verb>
void check_writes(const std::string& name, std::size_t n, const Verb& verb) {
  CAPTURE(name, n);
  const std::size_t rows = 3 * n + 77;
  const stream_of_test stream;
  const exec_space exec(stream.handle);
  auto table = array_of<Table>("table", rows), twin = array_of<Table>("twin", rows);
  using batch_type =
      std::conditional_t<std::is_same_v<Table, columns>, columns, ferry::tensor<float, device_space>>;
  auto batch = array_of<batch_type>("batch", n);
  fill(exec, table, 1), fill(exec, twin, 1), fill(exec, batch, 2);
  list_type list("list", n);
  std::mt19937_64 random(n);
  auto before = bytes_of(table);
  const auto set = [&](bool bad) {
    name_rows(list, random, rows, bad);
    before = bytes_of(table);
  };
  auto state = state_of(table), twin_state = state_of(twin);
  bool first = true;
  launch_graph(
      exec, stream.handle,
      [&] {
        if (first) verb(exec, twin, twin_state, list, batch).wait();
        first = false;
        return verb(exec, table, state, list, batch);
      },
      set,
      [&](bool bad) {
        if (!bad) verb(exec, twin, twin_state, list, batch).wait();
        exec.fence("twin");
        CHECK((bytes_of(table) == (bad ? before : bytes_of(twin))));
      });
}

/// As above through a cache of a third of the rows, whose twin has none.
template <class Table, class Verb>
void check_cached(const std::string& name, std::size_t n, const Verb& verb) {
  CAPTURE(name, n);
  const std::size_t rows = 3 * n + 77;
  const stream_of_test stream;
  const exec_space exec(stream.handle);
  auto table = array_of<Table>("table", rows), twin = array_of<Table>("twin", rows);
  auto batch = array_of<ferry::tensor<float, device_space>>("batch", n);
  fill(exec, table, 1), fill(exec, twin, 1), fill(exec, batch, 2);
  auto state = ferry::optim::make_state(rule, table), twin_state = ferry::optim::make_state(rule, twin);
  list_type list("list", n);
  std::mt19937_64 random(n);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = rows / 3, .refresh = 1000000});
  auto before = bytes_of(table);
  const auto set = [&](bool bad) {
    name_rows(list, random, rows, bad);
    hot.flush(exec).wait();
    before = bytes_of(table);
  };
  bool first = true;
  launch_graph(
      exec, stream.handle,
      [&] {
        if (first) verb(exec, twin, twin_state, list, batch).wait();
        first = false;
        return verb(exec, hot, state, list, batch);
      },
      set,
      [&](bool bad) {
        if (!bad) verb(exec, twin, twin_state, list, batch).wait();
        hot.flush(exec).wait();
        CHECK((bytes_of(table) == (bad ? before : bytes_of(twin))));
      });
}

/// A verb that reads rows. After a bad launch the next good one is as outside of graphs.
template <class Table, class Out, class Verb>
void check_reads(const std::string& name, std::size_t n, std::size_t out_rows, const Verb& verb) {
  CAPTURE(name, n);
  const std::size_t rows = 3 * n + 77;
  const stream_of_test stream;
  const exec_space exec(stream.handle);
  auto table = array_of<Table>("table", rows);
  auto out = array_of<Out>("out", out_rows), expected = array_of<Out>("expected", out_rows);
  fill(exec, table, 1), fill(exec, out, 2), fill(exec, expected, 3);
  list_type list("list", n);
  std::mt19937_64 random(n);
  launch_graph(
      exec, stream.handle, [&] { return verb(exec, table, list, out); },
      [&](bool bad) { name_rows(list, random, rows, bad); },
      [&](bool bad) {
        if (bad) return;
        verb(exec, table, list, expected).wait();
        CHECK((bytes_of(out) == bytes_of(expected)));
      });
}

constexpr std::size_t sizes[] = {100, 20000};

constexpr auto scatter = [](const auto& exec, auto& table, auto&, auto& list, auto& batch) {
  return ferry::scatter(exec, table, list, batch, distinct);
};
constexpr auto scatter_add = [](const auto& exec, auto& table, auto&, auto& list, auto& batch) {
  return ferry::scatter_add(exec, table, list, batch, distinct);
};
constexpr auto step = [](const auto& exec, auto& table, auto& state, auto& list, auto& batch) {
  return ferry::step(exec, rule, table, state, list, batch, distinct);
};
constexpr auto gather = [](const auto& exec, const auto& table, auto& list, auto& out) {
  return ferry::gather(exec, table, list, out);
};

template <class Table, bool Sums = false>
void check_table(const std::string& name) {
  for (const std::size_t n : sizes) {
    check_writes<Table>(name + ", scatter", n, scatter);
    if constexpr (Sums) check_writes<Table>(name + ", scatter_add", n, scatter_add);
    if constexpr (std::is_same_v<Table, columns>) {
      check_reads<Table, columns>(name + ", gather", n, n, gather);
    } else {
      check_writes<Table>(name + ", step", n, step);
      check_reads<Table, ferry::tensor<float, device_space>>(name + ", gather", n, n, gather);
      check_reads<Table, ferry::tensor<float, mapped_space>>(name + ", gather to host", n, n, gather);
    }
  }
}

TEST_CASE("graphs of plain verbs write again after a bad index", "[cache][graph]") {
  check_table<ferry::tensor<float, device_space>, true>("float, device");
  check_table<ferry::tensor<float, mapped_space>, true>("float, mapped");
  check_table<columns, true>("columns");
}

TEST_CASE("graphs of verbs on quantized rows write again after a bad index", "[cache][graph]") {
  check_table<ferry::quantized_tensor<quantization::mxfp8, device_space>>("mxfp8, device");
  check_table<ferry::quantized_tensor<quantization::mxfp8, mapped_space, device_space>>(
      "mxfp8, mapped, device");
  check_table<ferry::quantized_tensor<quantization::nvfp4, pinned_space>>("nvfp4, pinned");
  check_table<ferry::quantized_tensor<quantization::per_row<quantization::e4m3>, mapped_space>>(
      "per_row, mapped");
  check_table<ferry::rowwise_int8_tensor<device_space>>("int8, device");
  check_table<ferry::rowwise_int8_tensor<mapped_space>>("int8, mapped");
  using mx = ferry::quantized_tensor<quantization::mxfp8, mapped_space, device_space>;
  using packed = ferry::quantized_tensor<quantization::mxfp8, device_space>;
  for (const std::size_t n : {std::size_t{120}, std::size_t{24000}}) {
    check_reads<mx, packed>("gather of codes", n, n, gather);
    check_reads<mx, ferry::tensor<float, device_space>>(
        "bags", n, n / 4, [](const auto& exec, const auto& table, auto& list, auto& out) {
          return ferry::gather_bags(exec, table, list, 4, out, ferry::pooling::sum{});
        });
  }
}

TEST_CASE("graphs of verbs on cached tables write again after a bad index", "[cache][graph]") {
  using f = ferry::tensor<float, mapped_space>;
  using mx = ferry::quantized_tensor<quantization::mxfp8, mapped_space, device_space>;
  for (const std::size_t n : sizes) {
    check_cached<f>("float, scatter", n, scatter);
    check_cached<f>("float, step", n, step);
    check_cached<mx>("mxfp8, step", n, step);
  }
}

TEST_CASE("a captured scatter of indices into cached quantized rows says what it needs", "[cache][graph]") {
  using mx = ferry::quantized_tensor<quantization::mxfp8, mapped_space, device_space>;
  const stream_of_test stream;
  const exec_space exec(stream.handle);
  auto table = array_of<mx>("table", 500);
  auto batch = array_of<ferry::tensor<float, device_space>>("batch", 100);
  fill(exec, table, 1), fill(exec, batch, 2);
  list_type list("list", 100);
  std::mt19937_64 random(5);
  name_rows(list, random, 500, false);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 100});
  ferry::scatter(exec, hot, list, batch, distinct).wait();
  check(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeThreadLocal));
  std::string message;
  try {
    ferry::scatter(exec, hot, list, batch, distinct).detach();
  } catch (const ferry::invalid_argument& refused) {
    message = refused.what();
  }
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream.handle, &captured));
  check(cudaGraphDestroy(captured));
  CAPTURE(message);
  CHECK(message.find("make the plan before the capture") != std::string::npos);
  CHECK(message.find("assume_unique") == std::string::npos);
}

TEST_CASE("a captured write of distinct rows needs no sort", "[cache][graph]") {
  // By this profile the rows of any pinned table are sorted.
  const exec_space exec;
  const auto before = ferry::current_profile(exec);
  auto profile = before;
  profile.pinned_reach_gib = 1e-9;
  profile.pinned_group_ns = profile.sort_us = profile.sort_ns_per_index = profile.ordered_call_us = 0;
  profile.host_write_row_ns = 1e6;
  ferry::use_profile(exec, profile);
  ferry::tensor<float, pinned_space> table("table", 60077, width);
  CHECK(ferry::explain(ferry::verb::scatter, table, 20000).picked == ferry::path_kind::ordered);
  check_writes<ferry::tensor<float, pinned_space>>("float, pinned", 20000, scatter);
  ferry::use_profile(exec, before);
}

}  // namespace ferry_test::graphs_after_bad_cuda_test
