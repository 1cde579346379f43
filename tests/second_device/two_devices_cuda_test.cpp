// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <thread>
#include <utility>

/// Two devices in one process; Kokkos' default one is the first.
namespace ferry_test {

namespace {

using device_memory = ferry::device_space;

constexpr std::size_t rows = 700, width = 20, n = 400;
/// One path alone, which is less to compile.
constexpr ferry::path::direct direct{};

/// The message of the Error that `act` throws; empty where there is none.
template <class Error, class Act>
std::string said(const Act& act) {
  try {
    act();
  } catch (const Error& caught) {
    return caught.what();
  }
  return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Checks that `act` is refused, naming the verb, the array and both devices.
template <class Act>
void check_refusal(const std::string& verb, const std::string& label, const Act& act) {
  const std::string text = said<ferry::invalid_argument>(act);
  INFO(text);
  CHECK(has(text, "ferry::" + verb));
  CHECK(has(text, "'" + label + "'"));
  CHECK(has(text, "device 0"));
  CHECK(has(text, "device 1"));
}

}  // namespace

TEST_CASE("threads work on a device each at the same time", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  constexpr int rounds = 40;
  constexpr std::size_t large = 20000;
  std::exception_ptr thrown[2];
  int wrong[2] = {0, 0};
  const user_stream streams[2] = {user_stream(0), user_stream(1)};
  const Kokkos::Cuda instances[2] = {instance_over(streams[0]), instance_over(streams[1])};
  std::vector<std::thread> threads;
  for (int d = 0; d < 2; ++d)
    threads.emplace_back([&, d] {
      try {
        const Kokkos::Cuda& exec = instances[d];
        auto random = generator(60 + static_cast<std::uint64_t>(d));
        ferry::tensor<float, device_memory> table("table", ferry::device{d}, large, width);
        ferry::tensor<float, device_memory> out("out", ferry::device{d}, large, width);
        ferry::init::uniform(exec, table, -1.0f, 1.0f, 7);
        ferry::tensor<float, ferry::pinned_space> read("read", large, width), all("all", large, width);
        ferry::copy(exec, table, all).wait();
        for (int round = 0; round < rounds; ++round) {
          const auto which = indices<std::int64_t>(random, large, large);
          ferry::gather(exec, table, which, out, direct).detach();
          ferry::copy(exec, out, read).wait();
          for (std::size_t i = 0; i < large; i += 97)
            for (std::size_t j = 0; j < width; ++j)
              wrong[d] += read(i, j) != all(static_cast<std::size_t>(which[i]), j);
        }
      } catch (...) {
        thrown[d] = std::current_exception();
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : thrown)
    if (each != nullptr) std::rethrow_exception(each);
  CHECK(wrong[0] == 0);
  CHECK(wrong[1] == 0);
}

TEST_CASE("memory, statistics and budgets are those of a device", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const ferry::device one{1};
  ferry::trim();
  const auto held = [](int id) { return ferry::memory_statistics<device_memory>(ferry::device{id}).current; };
  const std::size_t before[2] = {held(0), held(1)};
  const auto listed = ferry::devices();
  REQUIRE(listed.size() >= 2);
  {
    const ferry::tensor<char, device_memory> there("there", one, 1 << 20);
    CHECK(held(0) == before[0]);
    CHECK(held(1) == before[1] + (1 << 20));
    CHECK(ferry::devices()[1].memory_used == listed[1].memory_used + (1 << 20));
    CHECK(ferry::devices()[0].memory_used == listed[0].memory_used);
    ferry::set_memory_budget<device_memory>(held(1) + 4096, one);
    CHECK(has(said<ferry::budget_exceeded>(
                  [&] { const ferry::tensor<char, device_memory> larger("larger", one, 1 << 28); }),
              "device_space of device 1"));
    const ferry::tensor<char, device_memory> here("here", 1 << 20);  // the budget of the other device
    CHECK(device_of_pointer(here.data()) == 0);
    ferry::set_memory_budget<device_memory>(0, one);
  }
  CHECK(held(1) == before[1]);
  // Scratch memory of verbs, too.
  const user_stream stream(1);
  const Kokkos::Cuda exec = instance_over(stream);
  const auto source = make_on<device_memory>(1, "source", 10, 4, repeated(40, 1.0f));
  ferry::tensor<float, device_memory> batch("batch", one, 5000, 4);
  ferry::gather(exec, source, repeated(5000, std::int64_t{3}), batch, direct).wait();
  CHECK(ferry::memory_statistics<device_memory>(one).reserved > 0);
  exec.fence();
  CHECK(ferry::trim<device_memory>() > 0);
  CHECK(ferry::memory_statistics<device_memory>(one).reserved == 0);
}

TEST_CASE("verbs refuse what lies on another device, and say what", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  const std::vector<std::int64_t> which{1, 2, 3};
  auto near = make_on<device_memory>(0, "near", 10, 4, repeated(40, 1.0f));
  auto far = make_on<device_memory>(1, "far", 10, 4, repeated(40, 2.0f));
  auto out = make_on<device_memory>(0, "out", 3, 4, repeated(12, -1.0f));
  check_refusal("gather", "far", [&] { ferry::gather(first, far, which, out, direct).wait(); });
  check_refusal("gather", "out", [&] { ferry::gather(second, far, which, out, direct).wait(); });
  check_refusal("scatter", "out", [&] { ferry::scatter(second, far, which, out, direct).wait(); });
  check_refusal("init", "far", [&] { ferry::init::zeros(first, far); });
  // Nothing was written, and the next call works.
  CHECK(equal(fetch(far), repeated(40, 2.0f)));
  CHECK(equal(fetch(out), repeated(12, -1.0f)));
  ferry::gather(first, near, which, out, direct).wait();
  CHECK(equal(fetch(out), repeated(12, 1.0f)));
}

TEST_CASE("one mapped table serves both devices through large pages", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  auto random = generator(54);
  const auto content = values<float>(random, rows * width);
  const auto which = indices<std::int64_t>(random, n, rows);
  auto early = make_on<ferry::mapped_space>(-1, "early", rows, width, content);
  const user_stream stream(1);
  const Kokkos::Cuda first, second = instance_over(stream);
  const auto readers = [](const ferry::tensor<float, ferry::mapped_space>& table) {
    std::array<int, 2> found{-9, -9};
    REQUIRE(cudaMemRangeGetAttribute(found.data(), sizeof found, cudaMemRangeAttributeAccessedBy,
                                     table.data(), table.size() * sizeof(float)) == cudaSuccess);
    return std::set<int>(found.begin(), found.end());
  };
  for (const Kokkos::Cuda* exec : {&first, &second}) {
    ferry::tensor<float, device_memory> batch("batch", ferry::device_of(*exec), n, width);
    ferry::gather(*exec, early, which, batch, direct).wait();
    CHECK(equal(fetch(batch), gathered(content, width, which, repeated(n * width, 0.0f))));
  }
  const auto late = make_on<ferry::mapped_space>(1, "late", rows, width, content);
  cudaPointerAttributes made{};
  REQUIRE(cudaPointerGetAttributes(&made, late.data()) == cudaSuccess);
  if (made.type != cudaMemoryTypeManaged) SKIP("mapped memory is page-locked here");
  CHECK(readers(early) == std::set<int>{0, 1});
  CHECK(readers(late) == std::set<int>{0, 1});
}

TEST_CASE("a graph of the second device repeats a gather there", "[two_devices]") {
  if (!has_two_devices()) SKIP("needs two devices");
  const user_stream stream(1);
  const Kokkos::Cuda exec = instance_over(stream);
  auto random = generator(55);
  const auto content = values<float>(random, rows * width);
  const auto which = indices<std::int64_t>(random, n, rows);
  const auto table = make_on<device_memory>(1, "table", rows, width, content);
  auto chosen = make_on<device_memory>(1, "which", n, 1, which);
  auto batch = make_on<device_memory>(1, "batch", n, width, repeated(n * width, -1.0f));
  const ferry::tensor_view<const std::int64_t, device_memory> list(chosen.data(), n);
  ferry::gather(exec, table, list, batch, direct).wait();
  send(batch, repeated(n * width, -1.0f));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  auto ticket = ferry::gather(exec, table, list, batch, direct);
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&runs, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(runs, stream.native()) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  ticket.wait();
  CHECK(equal(fetch(batch), gathered(content, width, which, repeated(n * width, 0.0f))));
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
}

}  // namespace ferry_test
