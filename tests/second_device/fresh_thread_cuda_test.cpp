// SPDX-License-Identifier: Apache-2.0
#include "second_device/two_devices.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/int8.hpp>
#include <ferry/loader.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <exception>

/// Each call as the first thing that a thread does, while Kokkos works on the last device: the thread has no context
/// of the driver, or one of another library. Memory that the thread allocates next must be on Kokkos' device.
namespace ferry_test::fresh_thread_cuda_test {

namespace {

using ferry::device_space;
using ferry::mapped_space;
using ferry::pageable_space;
using ferry::pinned_space;

const int kokkos_device = device_count() - 1;
/// The other devices in turn.
int other_device() {
  static int turn = 0;
  return turn++ % kokkos_device;
}
constexpr std::size_t rows = 3000, width = 32, n = 5000;  // more positions than a search takes

struct row_number {
  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<float>(row * 100 + column);
  }
};

/// Contexts of the driver that a thread may have before its first call.
enum class context { none, primary_of_other_device, separate_on_kokkos_device, separate_on_other_device };

CUcontext separate_context(int device) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  const CUresult status = cuCtxCreate(&context, nullptr, 0, device);
#else
  const CUresult status = cuCtxCreate(&context, 0, device);
#endif
  return status == CUDA_SUCCESS ? context : nullptr;
}

/// Device memory of the next allocation, and what a verb writes into it.
std::string check_next_tensor(const Kokkos::Cuda& exec, int device) {
  ferry::tensor<float, device_space> next("next", ferry::device_of(exec), n, width);
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, next.data()) != cudaSuccess) return "no attributes";
  if (attributes.device != device) return "the next tensor is on device " + std::to_string(attributes.device);
  ferry::init::custom(exec, next, row_number{});
  exec.fence();
  std::vector<float> values(n * width, -1.0f);
  if (cudaMemcpy(values.data(), next.data(), values.size() * sizeof(float), cudaMemcpyDefault) != cudaSuccess)
    return "cudaMemcpy fails";
  for (std::size_t p = 0; p < n; ++p)
    if (values[p * width + 7] != static_cast<float>(p * 100 + 7)) return "the next tensor has other values";
  return "";
}

/// The findings of a new thread, empty if there are none.
std::string run_in_thread(context kind, const Kokkos::Cuda& exec, int device,
                          const std::function<void()>& call) {
  std::string finding;
  std::thread([&] {
    CUcontext before = nullptr, after = nullptr, separate = nullptr;
    try {
      switch (kind) {
        case context::none:
          break;
        case context::primary_of_other_device:
          cudaSetDevice(other_device()), cudaFree(nullptr);
          break;
        case context::separate_on_kokkos_device:
          separate = separate_context(kokkos_device);
          break;
        case context::separate_on_other_device:
          separate = separate_context(other_device());
          break;
      }
      cuCtxGetCurrent(&before);
      if (kind != context::none && before == nullptr) finding = "the thread has no context";
      call();
      cuCtxGetCurrent(&after);
      if (before != nullptr && after != before) finding = "another context is current after the call";
      if (finding.empty()) finding = check_next_tensor(exec, device);
    } catch (const std::exception& error) {
      finding = error.what();
    }
    if (separate != nullptr) cuCtxDestroy(separate);
  }).join();
  return finding;
}

void check_everywhere(const std::string& name, const Kokkos::Cuda& exec, int device,
                      const std::function<void()>& call) {
  for (const context kind : {context::none, context::primary_of_other_device,
                             context::separate_on_kokkos_device, context::separate_on_other_device}) {
    INFO(name << ", context " << static_cast<int>(kind) << ", instance of device " << device);
    CHECK(run_in_thread(kind, exec, device, call) == "");
  }
}

/// Calls on tables of one space.
template <class Space>
void check_space(const std::string& space, const Kokkos::Cuda& exec, int device) {
  const ferry::device place = ferry::device_of(exec);
  std::vector<std::int64_t> indices(n);
  for (std::size_t p = 0; p < n; ++p) indices[p] = static_cast<std::int64_t>(p * 17 % rows);
  ferry::tensor<float, Space> table("table", place, rows, width);
  ferry::tensor<float, pinned_space> content("content", rows, width);
  ferry::tensor<float, device_space> batch("batch", place, n, width);
  ferry::init::custom(exec, table, row_number{});
  ferry::init::custom(exec, content, row_number{});
  exec.fence();
  const ferry::optim::sgd rule{.lr = 0.0};
  auto state = ferry::optim::make_state(rule, table);
  const auto each_path = [&](auto path) {
    return [&] {
      ferry::init::zeros(exec, batch);
      ferry::gather(exec, table, indices, batch, path).wait();
      std::vector<float> values(n * width);
      if (cudaMemcpy(values.data(), batch.data(), values.size() * sizeof(float), cudaMemcpyDefault) !=
          cudaSuccess)
        throw std::runtime_error("cudaMemcpy fails");
      for (std::size_t p = 0; p < n; ++p)
        if (values[p * width + 3] != static_cast<float>(indices[p] * 100 + 3))
          throw std::runtime_error("other rows");
    };
  };
  check_everywhere(space + " tensor", exec, device,
                   [&] { ferry::tensor<float, Space>("x", place, rows, width); });
  check_everywhere(space + " init", exec, device, [&] { ferry::init::custom(exec, table, row_number{}); });
  check_everywhere(space + " gather", exec, device, each_path(ferry::path::automatic{}));
  if constexpr (!std::is_same_v<Space, device_space>)
    check_everywhere(space + " staged", exec, device, each_path(ferry::path::staged{}));
  if constexpr (std::is_same_v<Space, pinned_space> || std::is_same_v<Space, mapped_space>)
    check_everywhere(space + " cooperative", exec, device, each_path(ferry::path::cooperative{}));
  check_everywhere(space + " scatter", exec, device, [&] {
    ferry::init::zeros(exec, batch);
    ferry::scatter_add(exec, table, indices, batch).wait();
  });
  check_everywhere(space + " step", exec, device,
                   [&] { ferry::step(exec, rule, table, state, indices, batch).wait(); });
  check_everywhere(space + " make_state", exec, device,
                   [&] { static_cast<void>(ferry::optim::make_state(ferry::optim::adam{}, table)); });
  check_everywhere(space + " copy", exec, device, [&] { ferry::copy(exec, content, table).wait(); });
  check_everywhere(space + " clone", exec, device, [&] { static_cast<void>(ferry::clone(exec, table)); });
}

void check_rest(const Kokkos::Cuda& exec, int device) {
  const ferry::device place = ferry::device_of(exec);
  std::vector<std::int64_t> indices(n);
  for (std::size_t p = 0; p < n; ++p) indices[p] = static_cast<std::int64_t>(p * 17 % rows);
  ferry::tensor<float, device_space> batch("batch", place, n, width);
  ferry::tensor<float, mapped_space> table("table", rows, width);
  ferry::init::custom(exec, table, row_number{});
  exec.fence();
  const auto call = [&](const std::string& name, const std::function<void()>& work) {
    check_everywhere(name, exec, device, work);
  };
  call("plan", [&] { static_cast<void>(ferry::make_plan(exec, indices, rows).unique_count()); });
  call("gather to a new tensor",
       [&] { static_cast<void>(ferry::gather<device_space>(exec, table, indices).get()); });
  call("adopt", [&] {
    std::vector<float> memory(rows * width);
    static_cast<void>(ferry::adopt<pinned_space>(std::span<float>(memory), rows, width));
  });
  call("bad index", [&] {
    const std::vector<std::int64_t> bad(n, static_cast<std::int64_t>(rows));
    try {
      ferry::gather(exec, table, bad, batch).wait();
    } catch (const ferry::out_of_range&) {
      return;
    }
    throw std::runtime_error("no error");
  });
  {
    auto ticket = ferry::gather(exec, table, indices, batch);
    call("ready", [&] { static_cast<void>(ticket.ready()); });
    call("then", [&] { ticket.then(exec); });
    call("wait", [&] { ticket.wait(); });
  }
  call("devices", [] { static_cast<void>(ferry::devices()); });
  call("profile", [&] { static_cast<void>(ferry::current_profile(exec)); });
  call("trim", [] { static_cast<void>(ferry::trim()); });
  call("grad_norm", [&] { static_cast<void>(ferry::optim::grad_norm(exec, batch).wait()); });
  if (device == kokkos_device) {
    call("cached table", [&] {
      ferry::cached_table hot(table, ferry::cache::frequency{.rows = 100});
      ferry::gather(exec, hot, indices, batch).wait();
    });
    call("8-bit table", [&] { ferry::rowwise_int8_tensor<device_space>("codes", rows, width); });
  }
  call("row_prefetcher", [&] {
    ferry::row_prefetcher batches(exec, table, ferry::samples_of(indices), {.batch = 512});
    while (auto part = batches.next()) static_cast<void>(part->gathered());
  });
}

}  // namespace

TEST_CASE("memory follows a thread's first call to Kokkos' device", "[second_device][fresh]") {
  const Kokkos::Cuda exec;
  REQUIRE(exec.cuda_device() == kokkos_device);
  check_space<device_space>("device", exec, kokkos_device);
  check_space<mapped_space>("mapped", exec, kokkos_device);
  check_space<pinned_space>("pinned", exec, kokkos_device);
  check_space<pageable_space>("pageable", exec, kokkos_device);
  check_rest(exec, kokkos_device);
}

TEST_CASE("memory follows a thread's first call to an instance's device", "[second_device][fresh]") {
  const instances execs;
  const Kokkos::Cuda first;
  ferry::tensor<float, device_space> batch("batch", n, width);
  for (int device = 0; device < kokkos_device; ++device) {
    const Kokkos::Cuda& exec = execs[device];
    REQUIRE(exec.cuda_device() == device);
    check_space<device_space>("device", exec, device);
    if (device == 0) {
      check_space<mapped_space>("mapped", exec, device);
      check_rest(exec, device);
    }
    // Kokkos' own device comes next in the thread: memory without a device is there.
    check_everywhere("both devices", first, kokkos_device, [&] {
      ferry::tensor<float, device_space> elsewhere("elsewhere", ferry::device{device}, n, width);
      ferry::init::zeros(exec, elsewhere);
      ferry::init::zeros(first, batch);
    });
  }
}

}  // namespace ferry_test::fresh_thread_cuda_test
