// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/interop/dlpack.hpp>
#include <ferry/interop/thrust.hpp>

#include <cuda_runtime.h>
#include <thrust/device_vector.h>

/// Facts that only a device shows: the order of streams, and its runtime's knowledge of addresses.
namespace ferry_test::dlpack_cuda_test {

/// Waits on the device until the host raises the flag, for some ten seconds at most; reading[0] = 1 if it did.
struct wait_for_flag_then {
  const volatile int* flag;
  int* reading;
  KOKKOS_FUNCTION void operator()(int) const {
    int raised = 0;
    for (int tries = 0; tries < 10000000 && raised == 0; ++tries) raised = *flag;
    *reading = raised;
  }
};

struct read_shared {
  const int* source;
  int* target;
  KOKKOS_FUNCTION void operator()(int) const { *target = *source; }
};

TEST_CASE("a consumer's stream comes after the verbs on a shared tensor, and the host does not wait",
          "[dlpack]") {
  const auto exec = Kokkos::Experimental::partition_space(Kokkos::Cuda{}, std::vector<int>(2, 1));
  auto flag = make<ferry::pinned_space>("flag", std::vector<int>{0});
  auto observed = make<ferry::device_space>("seen", std::vector<int>{-1});
  auto copied = make<ferry::device_space>("copied", std::vector<int>{-1});
  const auto source = make<ferry::device_space>("source", std::vector<int>{42});
  const auto shared = std::make_shared<ferry::tensor<int, ferry::device_space>>("shared", 1);
  using policy = Kokkos::RangePolicy<Kokkos::Cuda>;
  for (const bool waits :
       {false, true}) {  // the first round loads the kernels, which may wait for the device
    flag(0) = waits ? 0 : 1;
    put(*shared, {-1});
    put(copied, {-1});
    Kokkos::parallel_for("ferry_test::wait", policy(exec[0], 0, 1),
                         wait_for_flag_then{flag.data(), observed.data()});
    auto writing = ferry::copy(exec[0], source, *shared);
    auto* const out = ferry::to_dlpack(exec[1], shared);
    Kokkos::parallel_for("ferry_test::read", policy(exec[1], 0, 1),
                         read_shared{static_cast<const int*>(out->dl_tensor.data), copied.data()});
    *static_cast<volatile int*>(flag.data()) = 1;  // the kernel gave up before if to_dlpack had waited for it
    exec[1].fence("ferry_test::read");
    writing.wait();
    CHECK(take(observed) == std::vector<int>{1});
    CHECK(take(copied) == std::vector<int>{42});
    out->deleter(out);
  }
}

/// An array of another library over memory that the test owns.
DLManagedTensorVersioned array_at(void* data, DLDevice device, std::int64_t* shape) {
  DLManagedTensorVersioned managed{};
  managed.version = {1, 0};
  managed.dl_tensor = {data, device, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  return managed;
}

template <class Space>
void refuses(DLManagedTensorVersioned array, const std::string& says) {
  CHECK_THROWS_MATCHES((ferry::from_dlpack<float, Space>(&array)), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(says)));
}
template <class Space>
void takes(DLManagedTensorVersioned array) {
  CHECK((ferry::from_dlpack<float, Space>(&array)).data() == array.dl_tensor.data);
}

TEST_CASE("an address says in which space an array may be taken", "[dlpack]") {
  std::int64_t shape = 8;
  const int device = Kokkos::Cuda{}.cuda_device();
  SECTION("ordinary memory") {
    std::vector<float> memory(8);
    const auto array = array_at(memory.data(), {kDLCPU, 0}, &shape);
    takes<ferry::pageable_space>(array);
    refuses<ferry::pinned_space>(array, "is not page-locked: take it as pageable_space");
    refuses<ferry::mapped_space>(array, "is not page-locked");
    refuses<ferry::device_space>(array, "ordinary host memory");
  }
  SECTION("page-locked memory that its library calls the CPU's") {
    void* memory = nullptr;
    REQUIRE(cudaHostAlloc(&memory, 32, cudaHostAllocDefault) == cudaSuccess);
    const auto array = array_at(memory, {kDLCPU, 0}, &shape);
    takes<ferry::pageable_space>(array);
    takes<ferry::pinned_space>(array);
    takes<ferry::mapped_space>(array);
    refuses<ferry::device_space>(array, "page-locked host memory");
    REQUIRE(cudaFreeHost(memory) == cudaSuccess);
  }
  SECTION("memory of the device") {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 32) == cudaSuccess);
    const auto array = array_at(memory, {kDLCUDA, device}, &shape);
    takes<ferry::device_space>(array);
    refuses<ferry::pageable_space>(array, "is not host memory: take it as device_space");
    refuses<ferry::pinned_space>(array, "is not host memory");
    refuses<ferry::pageable_space>(array_at(memory, {kDLCPU, 0}, &shape), "device memory");
    refuses<ferry::device_space>(array_at(memory, {kDLROCM, 0}, &shape), "reaches no such device");
    REQUIRE(cudaFree(memory) == cudaSuccess);
  }
  SECTION("managed memory") {
    void* memory = nullptr;
    REQUIRE(cudaMallocManaged(&memory, 32) == cudaSuccess);
    const auto array = array_at(memory, {kDLCUDAManaged, 0}, &shape);
    takes<ferry::device_space>(array);
    takes<ferry::mapped_space>(array);
    takes<ferry::pinned_space>(array);
    takes<ferry::pageable_space>(array);
    REQUIRE(cudaFree(memory) == cudaSuccess);
  }
}

TEST_CASE("host memory is not shown as another device's", "[dlpack]") {
  const auto table = std::make_shared<ferry::tensor<float, ferry::pinned_space>>("table", 4);
  const int device = Kokkos::Cuda{}.cuda_device();
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(table, DLDevice{kDLCUDA, device + 1})),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(table, DLDevice{kDLCUDAManaged, 0})),
                  ferry::invalid_argument);
  const auto device_array = std::make_shared<ferry::tensor<float, ferry::device_space>>("there", 4);
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(device_array, DLDevice{kDLCPU, 0})),
                  ferry::invalid_argument);
}

TEST_CASE("an instance that is being captured takes no array over", "[dlpack][graph]") {
  const auto exec = Kokkos::Experimental::partition_space(Kokkos::Cuda{}, std::vector<int>(2, 1));
  const auto table = std::make_shared<ferry::tensor<float, ferry::device_space>>("table", 4);
  REQUIRE(cudaStreamBeginCapture(exec[0].cuda_stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK_THROWS_MATCHES(static_cast<void>(ferry::to_dlpack(exec[0], table)), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("captured")));
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(exec[0].cuda_stream(), &graph) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("verbs take Thrust's vectors and pointers", "[thrust]") {
  const Kokkos::Cuda exec;
  const auto table = make<ferry::mapped_space>("table", 4, 2, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<std::int32_t> list{3, 0, 3};
  const thrust::device_vector<std::int32_t> indices(list.begin(), list.end());
  thrust::device_vector<float> batch(6, -1.0f);
  const auto rows = ferry::thrust_view(batch.data(), 3, 2);
  ferry::gather(exec, table, indices, rows).wait();
  std::vector<float> got(6);
  ferry::copy(exec, batch, got).wait();
  CHECK(got == std::vector<float>{7, 8, 1, 2, 7, 8});
  auto device_array = make<ferry::device_space>("there", got);
  const auto first = ferry::to_thrust<thrust::device_ptr<float>>(device_array);
  CHECK(*first == 7.0f);
}

}  // namespace ferry_test::dlpack_cuda_test
