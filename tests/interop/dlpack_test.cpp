// SPDX-License-Identifier: Apache-2.0
#include "support/manual_event.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/interop/dlpack.hpp>

#include <complex>

namespace ferry_test::dlpack_test {

/// Another library's array: pageable memory, and a count of its deleter's calls.
template <class Managed, class T>
struct producer {
  explicit producer(std::vector<std::int64_t> sizes) : shape(std::move(sizes)) {
    std::int64_t count = 1;
    for (const auto extent : shape) count *= extent;
    memory.assign(static_cast<std::size_t>(count), T{});
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<T>(i);
    strides.resize(shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
    DLTensor& array = managed.dl_tensor;
    array = {memory.data(),
             {kDLCPU, 0},
             static_cast<std::int32_t>(shape.size()),
             ferry::detail::dlpack_type<T>(),
             shape.data(),
             strides.data(),
             0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<producer*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
  }
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

  std::vector<std::int64_t> shape, strides;
  std::vector<T> memory;
  int deleted = 0;
  Managed managed{};
};

using versioned = DLManagedTensorVersioned;
using legacy = DLManagedTensor;

template <class Space>
DLDevice expected_device() {
  if (ferry::detail::device_is_host<Space> || std::is_same_v<Space, ferry::pageable_space>)
    return {kDLCPU, 0};
  const auto codes = ferry::device_backend<Space>::dlpack_devices();
  if (std::is_same_v<Space, ferry::device_space>)
    return {static_cast<DLDeviceType>(codes.device),
            ferry::execution_backend<exec_space>::device_of(exec_space())};
  const auto place = ferry::device_backend<Space>::place_of(ferry::tensor<int, Space>("probe", 1).data());
  return {static_cast<DLDeviceType>(place.kind == ferry::memory_kind::managed ? codes.managed
                                                                              : codes.page_locked),
          0};
}

TEMPLATE_TEST_CASE("a tensor travels through DLPack and back without a copy", "[dlpack]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  const auto contents = values<float>(random, 24);
  auto table = make<TestType>("table", 6, 4, contents);
  const float* const data = table.data();
  versioned* const out = ferry::to_dlpack(std::move(table));
  CHECK(table.data() == nullptr);
  CHECK(out->version.major == 1);
  CHECK(out->flags == 0);
  const DLTensor& array = out->dl_tensor;
  CHECK(array.data == data);
  CHECK(array.device.device_type == expected_device<TestType>().device_type);
  CHECK(array.device.device_id == expected_device<TestType>().device_id);
  CHECK(array.ndim == 2);
  CHECK((array.dtype.code == kDLFloat && array.dtype.bits == 32 && array.dtype.lanes == 1));
  CHECK((array.shape[0] == 6 && array.shape[1] == 4));
  CHECK((array.strides[0] == 4 && array.strides[1] == 1));
  CHECK(array.byte_offset == 0);

  auto imported = ferry::from_dlpack<float, TestType>(out, "in");
  STATIC_CHECK(std::is_same_v<decltype(imported), ferry::tensor<float, TestType>>);
  CHECK(imported.data() == data);
  CHECK(imported.label() == "in");
  CHECK(take(imported) == contents);

  // A verb takes it, on both sides.
  const exec_space exec;
  const std::vector<std::int64_t> rows{5, 0, 5};
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  if constexpr (!std::is_same_v<TestType, ferry::pageable_space> || ferry::detail::device_is_host<TestType>) {
    ferry::gather(exec, imported, rows, batch, ferry::path::direct{}).wait();
  } else {
    ferry::gather(exec, imported, rows, batch).wait();
  }
  const auto got = take(batch);
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t j = 0; j < 4; ++j)
      CHECK(got[4 * p + j] == contents[4 * static_cast<std::size_t>(rows[p]) + j]);

  // And out again, to a consumer from before DLPack 1.0.
  legacy* const round_trip = ferry::to_dlpack<legacy>(std::move(imported));
  CHECK(round_trip->dl_tensor.data == data);
  round_trip->deleter(round_trip);
}

TEST_CASE("DLPack's types of elements are those of ferry", "[dlpack]") {
  const auto is = [](DLDataType type, int code, int bits) {
    return type.code == code && type.bits == bits && type.lanes == 1;
  };
  using ferry::detail::dlpack_type;
  CHECK(is(dlpack_type<double>(), 2, 64));
  CHECK(is(dlpack_type<ferry::half_t>(), 2, 16));
  CHECK(is(dlpack_type<ferry::bhalf_t>(), 4, 16));
  CHECK(is(dlpack_type<ferry::fp8_e4m3_t>(), kDLFloat8_e4m3fn, 8));
  CHECK(is(dlpack_type<ferry::fp8_e5m2_t>(), kDLFloat8_e5m2, 8));
  CHECK(is(dlpack_type<ferry::ue8m0_t>(), kDLFloat8_e8m0fnu, 8));
  const DLDataType pair = dlpack_type<ferry::fp4_e2m1_pair_t>();
  CHECK((pair.code == kDLFloat4_e2m1fn && pair.bits == 4 && pair.lanes == 2));
  CHECK(is(dlpack_type<std::int8_t>(), 0, 8));
  CHECK(is(dlpack_type<const std::int64_t>(), 0, 64));
  CHECK(is(dlpack_type<std::uint16_t>(), 1, 16));
  CHECK(is(dlpack_type<bool>(), 6, 8));
  CHECK(is(dlpack_type<std::complex<float>>(), 5, 64));
  CHECK(is(dlpack_type<Kokkos::complex<double>>(), 5, 128));
}

TEST_CASE("numbers of 8 and 4 bits travel through DLPack as themselves", "[dlpack]") {
  const auto travel = []<class T>(T, const char* name) {
    CAPTURE(name);
    std::vector<T> codes(12);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = T::from_bits(static_cast<std::uint8_t>(37 * i));
    auto table = make<ferry::device_space>("table", 3, 4, codes);
    const T* const data = table.data();
    versioned* const managed = ferry::to_dlpack(std::move(table));
    CHECK((managed->dl_tensor.shape[1] == 4 && managed->dl_tensor.strides[0] == 4));
    const auto back = ferry::from_dlpack<T, ferry::device_space>(managed);
    CHECK(back.data() == data);
    CHECK(same_bits(take(back), codes));
    auto second_table = make<ferry::device_space>("table", 3, 4, codes);
    CHECK_THROWS_MATCHES(
        (ferry::from_dlpack<std::uint8_t, ferry::device_space>(ferry::to_dlpack(std::move(second_table)))),
        ferry::invalid_argument,
        MessageMatches(ContainsSubstring(std::string("[3 x 4] of ") + name + " is no array of uint8")));
  };
  travel(ferry::fp8_e4m3_t{}, "float8_e4m3fn");
  travel(ferry::fp8_e5m2_t{}, "float8_e5m2");
  travel(ferry::ue8m0_t{}, "float8_e8m0fnu");
  travel(ferry::fp4_e2m1_pair_t{}, "float4_e2m1fn x 2 lanes");
}

TEMPLATE_TEST_CASE("the deleter runs once when the tensor dies", "[dlpack]", versioned, legacy) {
  producer<TestType, double> other({3, 5});
  {
    auto imported = ferry::from_dlpack<double, ferry::pageable_space>(&other.managed);
    CHECK(imported.data() == other.memory.data());
    CHECK((imported.rows() == 3 && imported.width() == 5 && imported(2, 4) == 14.0));
    auto moved = std::move(imported);
    imported = ferry::tensor<double, ferry::pageable_space>();
    CHECK(other.deleted == 0);
    auto* const out = ferry::to_dlpack(std::move(moved));
    CHECK(other.deleted == 0);
    CHECK(out->dl_tensor.data == other.memory.data());
    out->deleter(out);
    CHECK(other.deleted == 1);
  }
  CHECK(other.deleted == 1);

  producer<TestType, double> without({2});
  without.managed.deleter = nullptr;
  CHECK(ferry::from_dlpack<double, ferry::pageable_space>(&without.managed).rank() == 1);
}

TEMPLATE_TEST_CASE("DLPack objects that are no tensors are refused, and released once", "[dlpack]", versioned,
                   legacy) {
  producer<TestType, float> other({3, 4});
  DLTensor& array = other.managed.dl_tensor;
  const auto refused = [&](const std::string& says, const std::string& opening = "ferry::from_dlpack: 'x'") {
    other.deleted = 0;
    CHECK_THROWS_MATCHES((ferry::from_dlpack<float, ferry::pageable_space>(&other.managed, "x")),
                         ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(says) && ContainsSubstring(opening)));
    CHECK(other.deleted == 1);
  };
  SECTION("another type") {
    array.dtype = {kDLFloat, 64, 1};
    refused("[3 x 4] of float64 is no array of float32");
    array.dtype = {kDLInt, 32, 1};
    refused("int32");
    array.dtype = {kDLFloat, 32, 4};
    refused("float32 x 4 lanes");
    array.dtype = {kDLFloat, 32, 0};
    refused("x 0 lanes");
    array.dtype = {kDLFloat4_e2m1fn, 4, 1};
    refused("float4_e2m1fn is no array of float32");
    array.dtype = {kDLFloat6_e3m2fn, 6, 1};
    refused("type code 16, bits 6");
  }
  SECTION("strides") {
    other.strides = {1, 3};
    array.strides = other.strides.data();
    refused("[3 x 4] of float32 has strides [1 x 3]", "make it contiguous first");
    other.strides = {-4, 1};
    refused("strides [-4 x 1]");
    other.strides = {0, 0};
    refused("strides [0 x 0]");
  }
  SECTION("extents") {
    other.shape[1] = -1;
    refused("extent 1 is -1");
    array.ndim = 9;
    refused("has 9 extents");
    array.ndim = -1;
    refused("has -1 extents");
    array.ndim = 2;
    array.shape = nullptr;
    refused("no extents");
  }
  SECTION("a product that does not fit") {
    other.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    array.shape = other.shape.data();
    array.strides = nullptr;
    refused("does not fit the address space", "'x'");
  }
  SECTION("addresses") {
    array.byte_offset = 2;
    refused("no multiple of 4");
    array.byte_offset = 0;
    array.data = nullptr;
    refused("its pointer is null");
  }
  SECTION("devices") {
    array.device = {kDLMetal, 0};
    refused("on type 8:0: this build of ferry reaches no such device");
    array.device = {kDLROCM, 1};
    refused("kDLROCM:1");
  }
}

TEST_CASE("the version is looked at before anything else", "[dlpack]") {
  producer<versioned, float> other({3});
  other.managed.version = {2, 5};
  other.managed.dl_tensor.ndim = 1000000;
  CHECK_THROWS_MATCHES((ferry::from_dlpack<float, ferry::pageable_space>(&other.managed)),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring("of DLPack 2.5")));
  CHECK(other.deleted == 1);
  producer<versioned, float> newer({3});
  newer.managed.version = {1, 99};
  CHECK(ferry::from_dlpack<float, ferry::pageable_space>(&newer.managed).rows() == 3);
  versioned* const none = nullptr;
  CHECK_THROWS_AS((ferry::from_dlpack<float, ferry::pageable_space>(none)), ferry::invalid_argument);
}

TEST_CASE("legal oddities of DLPack", "[dlpack]") {
  SECTION("null strides are those of a compact array") {
    producer<legacy, std::int32_t> other({4, 2});
    other.managed.dl_tensor.strides = nullptr;
    CHECK(ferry::from_dlpack<std::int32_t, ferry::pageable_space>(&other.managed)(3, 1) == 7);
  }
  SECTION("a byte offset") {
    producer<versioned, std::int64_t> other({10});
    other.managed.dl_tensor.byte_offset = 16;
    other.shape[0] = 8;
    CHECK(ferry::from_dlpack<std::int64_t, ferry::pageable_space>(&other.managed)(0) == 2);
  }
  SECTION("strides of extents of one, and of no elements") {
    producer<versioned, float> other({1, 3, 1});
    other.strides = {77, 1, -5};
    other.managed.dl_tensor.strides = other.strides.data();
    CHECK(ferry::from_dlpack<float, ferry::pageable_space>(&other.managed).rank() == 3);
    producer<versioned, float> none({0, 3});
    none.strides = {9, 9};
    none.managed.dl_tensor.strides = none.strides.data();
    none.managed.dl_tensor.data = nullptr;
    const auto imported = ferry::from_dlpack<float, ferry::pageable_space>(&none.managed);
    CHECK((imported.rows() == 0 && imported.width() == 3 && imported.data() == nullptr));
  }
  SECTION("no extents: one element") {
    producer<versioned, float> other({});
    other.memory[0] = 42.0f;
    const auto imported = ferry::from_dlpack<float, ferry::pageable_space>(&other.managed);
    CHECK((imported.rank() == 1 && imported.rows() == 1 && imported(0) == 42.0f));
  }
  SECTION("extents of the type") {
    using fixed = ferry::extents<ferry::dyn, 4>;
    producer<versioned, float> other({3, 4});
    const auto imported = ferry::from_dlpack<float, ferry::pageable_space, fixed>(&other.managed);
    CHECK(imported.rows() == 3);
    producer<versioned, float> wide({3, 5});
    CHECK_THROWS_AS((ferry::from_dlpack<float, ferry::pageable_space, fixed>(&wide.managed)),
                    ferry::invalid_argument);
    CHECK(wide.deleted == 1);
  }
}

TEST_CASE("read-only arrays stay read-only", "[dlpack]") {
  producer<versioned, float> other({3, 4});
  other.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  CHECK_THROWS_MATCHES(
      (ferry::from_dlpack<float, ferry::pageable_space>(&other.managed)), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("is read-only; take it as from_dlpack<const T, Space>")));
  CHECK(other.deleted == 1);
  other.deleted = 0;
  auto imported = ferry::from_dlpack<const float, ferry::pageable_space>(&other.managed);
  STATIC_CHECK(std::is_same_v<decltype(imported), ferry::read_only_tensor<float, ferry::pageable_space>>);
  STATIC_CHECK(std::is_same_v<decltype(ferry::make_ref(imported))::value_type, const float>);
  CHECK((imported.rows() == 3 && imported.width() == 4 && imported(1, 2) == 6.0f &&
         imported.first(2).rows() == 2));

  std::vector<float> got(12, -1.0f);
  ferry::copy(Kokkos::DefaultHostExecutionSpace{}, imported, got).wait();
  CHECK(got == other.memory);

  versioned* const out = ferry::to_dlpack(std::move(imported));
  CHECK(out->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(other.deleted == 0);
  out->deleter(out);
  CHECK(other.deleted == 1);

  const auto table = std::make_shared<const ferry::tensor<float, ferry::pageable_space>>("table", 2, 2);
  versioned* const of_const = ferry::to_dlpack(table);
  CHECK(of_const->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  of_const->deleter(of_const);
}

TEST_CASE("a shared tensor outlives either side", "[dlpack]") {
  auto table = std::make_shared<ferry::tensor<int, ferry::mapped_space>>("table", 5, 2);
  const std::weak_ptr<void> alive = table;
  ferry::init::constant(exec_space(), *table, 7);
  versioned* const exported = ferry::to_dlpack(table);
  legacy* const two = ferry::to_dlpack<legacy>(exec_space(), table);
  CHECK((exported->dl_tensor.data == table->data() && two->dl_tensor.data == table->data()));
  table = nullptr;
  CHECK(static_cast<int*>(exported->dl_tensor.data)[9] == 7);
  exported->deleter(exported);
  CHECK(!alive.expired());
  two->deleter(two);
  CHECK(alive.expired());
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(table)), ferry::invalid_argument);
}

TEST_CASE("what can't be exported keeps its memory", "[dlpack]") {
  ferry::tensor<float, ferry::pageable_space> table("table", 2, 3);
  const float* const data = table.data();
  CHECK_THROWS_MATCHES(
      static_cast<void>(ferry::to_dlpack(std::move(table), DLDevice{kDLMetal, 0})), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'table'") && ContainsSubstring("presented as that of type 8:0")));
  CHECK(table.data() == data);
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(std::move(table), DLDevice{kDLCPU, 1})),
                  ferry::invalid_argument);
  CHECK(table.data() == data);
  ferry::tensor<float, ferry::pageable_space> empty;
  CHECK_THROWS_AS(static_cast<void>(ferry::to_dlpack(std::move(empty))), ferry::invalid_argument);

  ferry::tensor<float, ferry::device_space> no_rows("no rows", 0, 3);
  versioned* const out = ferry::to_dlpack(std::move(no_rows));
  CHECK(out->dl_tensor.data == nullptr);
  CHECK((out->dl_tensor.shape[0] == 0 && out->dl_tensor.shape[1] == 3));
  CHECK(out->dl_tensor.device.device_type == expected_device<ferry::device_space>().device_type);
  const auto imported = ferry::from_dlpack<float, ferry::device_space>(out);
  CHECK((imported.rows() == 0 && imported.width() == 3));
}

TEMPLATE_TEST_CASE("host memory that a device reaches can be presented as either's", "[dlpack]",
                   ferry::pinned_space, ferry::mapped_space) {
  const auto table = std::make_shared<ferry::tensor<float, TestType>>("table", 2, 3);
  versioned* const as_host = ferry::to_dlpack(table, DLDevice{kDLCPU, 0});
  CHECK(as_host->dl_tensor.device.device_type == kDLCPU);
  as_host->deleter(as_host);
  const DLDevice device = expected_device<ferry::device_space>();
  versioned* const as_device = ferry::to_dlpack(exec_space(), table, device);
  CHECK(as_device->dl_tensor.device.device_type == device.device_type);
  // Whatever the producer calls it, the memory is what its address says.
  const auto imported = ferry::from_dlpack<float, TestType>(as_device);
  CHECK(imported.data() == table->data());
}

void somebody_waits_for(const manual_event& event) {
  while (event.waits == 0) std::this_thread::yield();
}

TEST_CASE("a consumer gets the array after the work of verbs", "[dlpack]") {
  const auto table = std::make_shared<ferry::tensor<float, ferry::pageable_space>>("table", 2, 3);
  const auto written = std::make_shared<manual_event>();
  const auto read = std::make_shared<manual_event>();
  table->accesses()->add_write(written, 11);
  table->accesses()->add_read(read, 12);
  std::atomic<bool> got = false;
  versioned* out = nullptr;
  std::thread consumer([&] {
    out = ferry::to_dlpack(table);
    got = true;
  });
  somebody_waits_for(*written);
  CHECK(!got);
  written->end();
  somebody_waits_for(*read);
  CHECK(!got);
  read->end();
  consumer.join();
  REQUIRE(out != nullptr);

  SECTION("and a reader of a const tensor need not wait for reads") {
    const auto open = std::make_shared<manual_event>();
    table->accesses()->add_read(open, 12);
    versioned* const second =
        ferry::to_dlpack(std::shared_ptr<const ferry::tensor<float, ferry::pageable_space>>(table));
    CHECK(!open->ready());
    open->end();  // the deleter waits for readers, too
    second->deleter(second);
  }
  out->deleter(out);
}

TEST_CASE("the deleter waits for verbs that still use the memory", "[dlpack]") {
  ferry::tensor<float, ferry::pageable_space> table("table", 2, 3);
  const auto accesses = table.accesses();
  versioned* const out = ferry::to_dlpack(std::move(table));
  const auto late = std::make_shared<manual_event>();
  accesses->add_read(late, 13);
  std::atomic<bool> gone = false;
  std::thread consumer([&] {
    out->deleter(out);
    gone = true;
  });
  somebody_waits_for(*late);
  CHECK(!gone);
  late->end();
  consumer.join();
}

}  // namespace ferry_test::dlpack_test
