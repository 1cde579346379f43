// SPDX-License-Identifier: Apache-2.0
#include "../../src/io/unit_digests.hpp"
#include "io/checkpoint_kit.hpp"

#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/quantized.hpp>

#include <filesystem>

/// Saves of changes of tables in a device's memory, which a kernel digests.
namespace ferry_test::unit_digests_cuda_test {

namespace optim = ferry::optim;
namespace detail = ferry::detail;
using detail::digest_kind;

std::uint64_t written(const ferry::io::checkpoint& run) {
  return std::filesystem::file_size(run.path() + "/data-" + std::to_string(run.generations().back())) - 4096;
}
std::vector<digest_kind> kinds(const ferry::io::checkpoint& run) {
  std::vector<digest_kind> kinds_of_arrays;
  for (const auto& array : detail::read_digests(run.path(), detail::read_manifest(run.path())))
    kinds_of_arrays.push_back(array.kind);
  return kinds_of_arrays;
}

/// The digests of an array by its device, and by the kernel's function on the host.
template <class Array>
void check_digests(const Array& array) {
  const auto stored = detail::as_stored("", ferry::make_ref(array), "array");
  std::vector<detail::unit_digest> by_device(stored.schema.unit_count()), by_host(by_device.size());
  REQUIRE(detail::digest_on_device<Kokkos::Cuda>(stored, by_device));
  std::vector<std::byte> bytes(stored.schema.bytes());
  copy_to_host<ferry::device_space>(bytes.data(), stored.data, bytes.size());
  const ferry::kernels::digest_units kernel{reinterpret_cast<const unsigned char*>(bytes.data()),
                                            static_cast<std::int64_t>(bytes.size()),
                                            std::int64_t{stored.schema.unit_bytes}, by_host.data()};
  for (std::size_t i = 0; i < by_host.size() * 32; ++i) kernel(static_cast<std::int64_t>(i));
  CHECK(by_device == by_host);
}

TEST_CASE("a kernel digests dense arrays of any width and place", "[io][checkpoint][digests]") {
  auto random = generator(711);
  const auto bytes_of = [&](std::size_t rows, std::size_t width) {
    return make<ferry::device_space>("bytes", rows, width, values<std::uint8_t>(random, rows * width));
  };
  for (const std::size_t width :
       {std::size_t{1}, std::size_t{3}, std::size_t{132}, std::size_t{4096}, std::size_t{70001}})
    check_digests(bytes_of(300, width));
  const auto odd = bytes_of(9001, 33);
  check_digests(odd.rows_between(5, 8999));
  check_digests(bytes_of(300000, 1024));  // more units than one launch takes
  check_digests(make<ferry::device_space>("numbers", values<double>(random, 100001)));
  // Rows that lie apart, and memory of the host, are digested by the host.
  auto records = optim::make_records<float, ferry::device_space>(optim::adam{}, "records", 100, 6);
  std::vector<detail::unit_digest> none(100);
  CHECK_FALSE(detail::digest_on_device<Kokkos::Cuda>(detail::as_stored("", records.table(), "array"), none));
  const ferry::tensor<float, ferry::mapped_space> mapped("mapped", 100, 6);
  CHECK_FALSE(
      detail::digest_on_device<Kokkos::Cuda>(detail::as_stored("", ferry::make_ref(mapped), "array"), none));
}

TEST_CASE("saves of changes of tables in device memory", "[io][checkpoint][digests]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(712);
  constexpr std::size_t rows = 90000, width = 33;
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  auto expected = values<float>(random, rows * width);
  put(table, expected);
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("table", table);
  run.save();
  CHECK(kinds(run) == std::vector{digest_kind::by_device});
  const auto loaded = [&] {
    ferry::tensor<float, ferry::pageable_space> back("back", rows, width);
    ferry::io::checkpoint reading(run.path());
    reading.add("table", back);
    reading.load();
    return take(back);
  };
  constexpr std::uint64_t unit = 4096 / (width * 4) * width * 4;
  for (int turn = 0; turn < 12; ++turn) {
    const std::size_t count = 1 + random() % 20;
    const auto named = unique_indices<std::int64_t>(random, count, rows);
    const auto fresh = values<float>(random, count * width);
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(fresh.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  expected.begin() + named[i] * static_cast<std::int64_t>(width));
    ferry::scatter(exec, table, named, make<ferry::device_space>("batch", count, width, fresh)).detach();
    if (turn % 2 == 0) {
      run.save({.changes = true});
    } else {
      auto saving = run.save_async(exec, {.changes = true});
      ferry::init::constant(exec, table, 7.0f);  // the copy has been made
      saving.wait();
      put(table, expected);
    }
    CHECK(written(run) <= count * (unit + 4) + 3 * 64);
    CHECK(loaded() == expected);
  }
  run.save({.changes = true});
  CHECK(written(run) == 0);
  // The digests of the device and of the host can't be compared.
  ferry::tensor<float, ferry::mapped_space> mapped("mapped", rows, width);
  put(mapped, expected);
  ferry::io::checkpoint on_host(run.path());
  on_host.add("table", mapped);
  for (const bool is_second : {false, true}) {
    on_host.save({.changes = true});
    CHECK(kinds(run) == std::vector{digest_kind::xxh3});
    CHECK((written(run) == 0) == is_second);
    CHECK(loaded() == expected);
  }
  for (const bool is_second : {false, true}) {
    run.save({.changes = true});
    CHECK(kinds(run) == std::vector{digest_kind::by_device});
    CHECK((written(run) == 0) == is_second);
    CHECK(loaded() == expected);
  }
}

TEST_CASE("quantized tables, states and records in device memory have digests", "[io][checkpoint][digests]") {
  const temporary_folder folder;
  const exec_space exec;
  auto random = generator(713);
  constexpr std::size_t rows = 20000, width = 64;
  const optim::adam rule{.lr = 0.1};
  using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::device_space>;
  quantized codes("codes", rows, width), codes_back("codes", rows, width);
  ferry::quantize(
      exec, make<ferry::device_space>("numbers", rows, width, values<float>(random, rows * width)), codes)
      .wait();
  auto state = optim::make_state(rule, codes), state_back = optim::make_state(rule, codes_back);
  auto records = optim::make_records<float, ferry::device_space>(rule, "records", rows, 6);
  auto records_back = optim::make_records<float, ferry::device_space>(rule, "records", rows, 6);
  ferry::init::uniform(exec, records.table(), -1, 1, 3);
  ferry::io::checkpoint run(folder.path() + "/run"), back(folder.path() + "/run");
  run.add("codes", codes), run.add("adam", rule, state), run.add("records", rule, records);
  back.add("codes", codes_back), back.add("adam", rule, state_back), back.add("records", rule, records_back);
  run.save();
  const auto everything = written(run);
  for (int turn = 0; turn < 6; ++turn) {
    const auto row = indices<std::int64_t>(random, 3, rows);
    ferry::step(exec, rule, codes, state, row,
                make<ferry::device_space>("grads", 3, width, values<float>(random, 3 * width)))
        .wait();
    ferry::step(exec, rule, records, row, make<ferry::device_space>("grads", 3, 6, values<float>(random, 18)))
        .wait();
    run.save({.changes = true});
    CHECK(written(run) < everything / 20);
    back.load();
    CHECK(bits(codes_back.codes()) == bits(codes.codes()));
    CHECK(bits(codes_back.scales()) == bits(codes.scales()));
    for (int i = 0; i < state.fields(); ++i) CHECK(bits(state.field(i)) == bits(state_back.field(i)));
    ferry::tensor<float, ferry::device_space> weights("weights", rows, 6), loaded("weights", rows, 6);
    ferry::copy(exec, records.table(), weights).wait();
    ferry::copy(exec, records_back.table(), loaded).wait();
    CHECK(bits(weights) == bits(loaded));
  }
}

}  // namespace ferry_test::unit_digests_cuda_test
