// SPDX-License-Identifier: Apache-2.0
#include "plan_oracle.hpp"
#include "support/test.hpp"

/// The arrays of a plan as arguments of verbs and for host code.
namespace ferry_test::plan_arrays_test {

using host = Kokkos::DefaultHostExecutionSpace;
using numbers = std::vector<std::int64_t>;

/// By way of ferry::copy.
template <class Array>
numbers brought(const exec_space& exec, const Array& array) {
  numbers result(array.size());
  ferry::copy(exec, array, result).wait();
  return result;
}

template <class Array>
numbers read(const Array& array) {
  numbers numbers_read;
  for (std::size_t i = 0; i < array.rows(); ++i) numbers_read.push_back(array(i));
  return numbers_read;
}

TEMPLATE_TEST_CASE("a plan's arrays are arguments of verbs", "[plan]", std::int32_t, std::uint64_t) {
  auto random = generator(141);
  const exec_space exec;
  for (const std::size_t n : {0u, 1u, 777u, 5000u}) {
    auto ids = indices<TestType>(random, n, 300);
    for (std::size_t p = 0; p < n; p += 5) ids[p] = static_cast<TestType>(p % 2 == 0 ? -1 : 300);
    const auto plan = ferry::make_plan(exec, ids, 300, ferry::bounds::skip{});
    const auto expected = expected_plan(ids, 300, on_bad::leave);
    CHECK(brought(exec, plan.order()) == expected.order);
    CHECK(brought(exec, plan.rows_sorted()) == expected.sorted_rows);
    CHECK(brought(exec, plan.unique_rows()) == expected.unique_rows);
    CHECK(brought(exec, plan.segments()) == expected.segment_begin);
    CHECK(brought(exec, plan.inverse()) == expected.inverse);
  }
}

TEST_CASE("a plan's arrays as documented", "[plan]") {
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, std::vector<std::int32_t>{7, 2, 7, 5}, 10);
  CHECK(brought(exec, plan.order()) == numbers{1, 3, 0, 2});
  CHECK(brought(exec, plan.rows_sorted()) == numbers{2, 5, 7, 7});
  CHECK(brought(exec, plan.unique_rows()) == numbers{2, 5, 7});
  CHECK(brought(exec, plan.segments()) == numbers{0, 1, 2, 4});
  CHECK(brought(exec, plan.inverse()) == numbers{2, 0, 2, 1});
  STATIC_CHECK(std::is_same_v<decltype(plan.order())::value_type, const std::int64_t>);
  CHECK(plan.order().label() == "plan::order");
  CHECK(plan.segments().rank() == 1);
  const ferry::row_plan empty;
  CHECK(empty.order().size() == 0);
  CHECK(empty.unique_rows().size() == 0);
  CHECK(empty.segments().size() == 0);
}

TEST_CASE("unique rows and their inverse gather what the indices gather", "[plan]") {
  auto random = generator(142);
  const exec_space exec;
  constexpr std::size_t rows = 200, width = 5, n = 1500;
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto content = values<float>(random, rows * width);
  const auto table = make<ferry::mapped_space>("table", rows, width, content);
  const auto plan = ferry::make_plan(exec, ids, rows);
  const auto unique = plan.unique_count();
  ferry::tensor<float, ferry::device_space> distinct("once", rows, width), whole("all", n, width);
  ferry::gather(exec, table, plan.unique_rows(), distinct.first(unique)).wait();
  ferry::gather(exec, distinct.first(unique), plan.inverse(), whole).wait();
  std::vector<float> expected;
  for (const auto row : ids)
    for (std::size_t c = 0; c < width; ++c)
      expected.push_back(content[static_cast<std::size_t>(row) * width + c]);
  CHECK(take(whole) == expected);
}

TEST_CASE("the host reads the arrays of a plan of its own", "[plan]") {
  const host exec;
  const std::vector<std::int64_t> ids{4, -1, 4, 0, 9};
  const auto plan = ferry::make_plan(exec, ids, 9, ferry::bounds::skip{});
  using ferry::pageable_space;
  CHECK(read(plan.order<pageable_space>()) == numbers{3, 0, 2, 1, 4});
  CHECK(read(plan.rows_sorted<pageable_space>()) == numbers{0, 4, 4, 9, 9});
  CHECK(read(plan.unique_rows<pageable_space>()) == numbers{0, 4});
  CHECK(read(plan.segments<pageable_space>()) == numbers{0, 1, 3});
  CHECK(read(plan.inverse<pageable_space>()) == numbers{1, -1, 1, 0, -1});
  using usual = decltype(plan.order())::memory_space;
  STATIC_CHECK(std::is_same_v<usual, ferry::device_backend<usual>::scratch_space>);
}

TEST_CASE("the arrays of a plan lie in its workspace", "[plan][workspace]") {
  const exec_space exec;
  const std::vector<std::int32_t> ids{3, 1, 3};
  ferry::tensor<std::byte, ferry::mapped_space> workspace("workspace",
                                                          ferry::plan_workspace_bytes(exec, 3, 5));
  const auto plan = ferry::make_plan(exec, ids, 5, workspace);
  ferry::after(host{}, plan);
  const auto order = plan.order<ferry::mapped_space>();
  CHECK(read(order) == numbers{1, 0, 2});
  CHECK(read(plan.segments<ferry::mapped_space>()) == numbers{0, 1, 3});
  CHECK(order.accesses() == workspace.accesses());
  CHECK(brought(exec, plan.inverse()) == numbers{1, 0, 1});
}

TEST_CASE("a plan's arrays are not handed out for another space", "[plan]") {
  const auto storage = std::make_shared<ferry::detail::plan_storage>();
  storage->backend = "far";
  storage->space = ferry::device_space::name;
  const ferry::row_plan plan(storage);
  CHECK_THROWS_MATCHES(plan.order<ferry::mapped_space>(), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("lie in device_space, not in mapped_space") &&
                                      ContainsSubstring("plan.order<ferry::device_space>()")));
  CHECK_NOTHROW(plan.inverse<ferry::device_space>());
  storage->space = ferry::mapped_space::name;
  CHECK_NOTHROW(plan.order<ferry::mapped_space>());
  CHECK_NOTHROW(plan.order<ferry::device_space>());
  storage->space = ferry::pageable_space::name;
  CHECK_THROWS_AS(plan.order<ferry::device_space>(), ferry::invalid_argument);
  storage->on_host = true;
  CHECK_NOTHROW(plan.order<ferry::pageable_space>());
}

TEST_CASE("a view of a plan keeps its arrays, and its reader comes after the plan's making", "[plan]") {
  class late_write final : public ferry::detail::event {
   public:
    explicit late_write(std::function<void()> work) : work_(std::move(work)) {}
    void wait() override {
      if (work_) work_();
      work_ = nullptr;
    }
    [[nodiscard]] bool ready() override { return work_ == nullptr; }

   private:
    std::function<void()> work_;
  };
  std::int64_t order[] = {-1, -1};
  auto storage = std::make_shared<ferry::detail::plan_storage>();
  storage->positions = 2;
  storage->order = order;
  storage->on_host = true;
  storage->made_by = 7;
  storage->completion = std::make_shared<late_write>([&order] {
    order[0] = 1;
    order[1] = 0;
  });
  const std::weak_ptr<ferry::detail::plan_storage> watched = storage;
  ferry::row_plan plan(std::move(storage));
  auto view = plan.order<ferry::pageable_space>();
  plan = {};
  CHECK_FALSE(watched.expired());
  const auto table = make<ferry::pageable_space>("table", std::vector<float>{5, 6});
  ferry::tensor<float, ferry::pageable_space> batch("batch", 2);
  ferry::gather(host{}, table, view, batch).wait();
  CHECK(take(batch) == std::vector<float>{6, 5});
  view = {};
  CHECK(watched.expired());
}

}  // namespace ferry_test::plan_arrays_test
