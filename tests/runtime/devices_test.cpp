// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// The facts of every backend about its devices; several of them are in second_device/.
namespace ferry_test::devices_test {

TEST_CASE("the devices have numbers, names and memory", "[devices]") {
  const auto list = ferry::devices();
  REQUIRE(!list.empty());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list[i].id == static_cast<int>(i));
    CHECK_FALSE(list[i].name.empty());
    CHECK(list[i].memory_total > std::size_t{1} << 28);
    CHECK(list[i].memory_free > 0);
    CHECK(list[i].memory_free <= list[i].memory_total);
    CHECK(list[i].memory_used <= list[i].memory_total);
  }
}

TEST_CASE("what ferry holds on a device is counted there", "[devices]") {
  const auto home = ferry::device_of(exec_space{});
  REQUIRE(home.id >= 0);
  const auto bytes_in_use = [&] { return ferry::devices()[static_cast<std::size_t>(home.id)].memory_used; };
  ferry::trim<ferry::device_space>();
  const std::size_t before = bytes_in_use();
  {
    const ferry::tensor<char, ferry::device_space> block("held", 123457);
    CHECK(bytes_in_use() == before + 123457);
    const ferry::tensor<char, ferry::device_space> more("more", home, 1000);
    CHECK(bytes_in_use() == before + 124457);
    CHECK(ferry::memory_statistics<ferry::device_space>(home).current ==
          ferry::memory_statistics<ferry::device_space>().current);
  }
  ferry::trim<ferry::device_space>();
  CHECK(bytes_in_use() == before);
}

TEST_CASE("a tensor in device memory knows its device", "[devices]") {
  const auto home = ferry::device_of(exec_space{});
  ferry::tensor<float, ferry::device_space> usual("usual", 3, 4), placed("asked", home, 3, 4);
  const ferry::tensor<float, ferry::device_space, ferry::extents<ferry::dyn, 4>> fixed("fixed", home, 3);
  const ferry::tensor<float, ferry::device_space> listed("listed", home, std::array<std::size_t, 2>{3, 4});
  const ferry::tensor<float, ferry::device_space> empty("empty", home, 0, 4);
  CHECK(usual.device() == home);
  CHECK(placed.device() == home);
  CHECK(fixed.device() == home);
  CHECK(fixed.width() == 4);
  CHECK(listed.device() == home);
  CHECK(listed.rank() == 2);
  CHECK(empty.device() == home);
  const auto moved = std::move(placed);
  CHECK(moved.device() == home);
  CHECK(placed.device() == ferry::device{});
  CHECK(ferry::tensor<float, ferry::device_space>().device() == ferry::device{});
}

TEST_CASE("host memory belongs to no device, also if it was placed near one", "[devices]") {
  const auto home = ferry::device_of(exec_space{});
  CHECK(ferry::tensor<float, ferry::pinned_space>("pinned", home, 3).device() == ferry::device{});
  CHECK(ferry::tensor<float, ferry::mapped_space>("mapped", home, 3).device() == ferry::device{});
  CHECK(ferry::tensor<float, ferry::pageable_space>("pageable", home, 3).device() == ferry::device{});
}

TEST_CASE("memory on a device that there is none of is refused with the devices", "[devices]") {
  const int beyond = static_cast<int>(ferry::devices().size());
  for (const int id : {beyond, beyond + 7, -2}) {
    CHECK_THROWS_MATCHES(
        (ferry::tensor<float, ferry::device_space>("far", ferry::device{id}, 3)), ferry::invalid_argument,
        MessageMatches(ContainsSubstring("'ferry::tensor::far'") &&
                       ContainsSubstring("device " + std::to_string(id)) && ContainsSubstring("0")));
    CHECK_THROWS_AS((ferry::tensor<float, ferry::pinned_space>("far", ferry::device{id}, 3)),
                    ferry::invalid_argument);
  }
}

TEST_CASE("new tensors of verbs lie on the device of their instance or table", "[devices]") {
  const exec_space exec;
  const auto home = ferry::device_of(exec);
  ferry::tensor<float, ferry::device_space> table("table", home, 10, 4);
  ferry::init::zeros(exec, table);
  const std::vector<std::int64_t> ids{1, 2};
  CHECK(ferry::gather<ferry::device_space>(exec, table, ids).get().device() == home);
  CHECK(table.clone(exec).get().device() == home);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  CHECK(state.field_ref(0).device() == home.id);
}

TEST_CASE("the budget of a device holds there", "[devices]") {
  const auto home = ferry::device_of(exec_space{});
  const auto bytes = ferry::memory_statistics<ferry::device_space>(home).current;
  ferry::set_memory_budget<ferry::device_space>(bytes + 4096, home);
  CHECK(ferry::memory_statistics<ferry::device_space>().budget == bytes + 4096);
  CHECK_THROWS_AS((ferry::tensor<char, ferry::device_space>("too large", home, std::size_t{1} << 30)),
                  ferry::budget_exceeded);
  ferry::set_memory_budget<ferry::device_space>(0, home);
  CHECK(ferry::memory_statistics<ferry::device_space>().budget == 0);
}

}  // namespace ferry_test::devices_test
