// SPDX-License-Identifier: Apache-2.0
#include "plan_oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::plan_workspace_test {

auto says(const std::string& text) { return MessageMatches(ContainsSubstring(text)); }

using workspace_tensor = ferry::tensor<std::byte, ferry::device_space>;

workspace_tensor filled_workspace(std::size_t bytes) {
  workspace_tensor result("workspace", bytes);
  put(result, std::vector<std::byte>(bytes, std::byte{0x5A}));
  return result;
}

TEST_CASE("make_plan in a workspace: the same plan, and not a byte past its end", "[plan][workspace]") {
  auto random = generator(61);
  const exec_space exec;
  const std::size_t guard = 512;
  for (const std::size_t rows : {1u, 77u, 4096u, 3000000u})
    for (const std::size_t n : {0u, 1u, 2u, 17u, 4095u, 4097u, 65537u}) {
      CAPTURE(rows, n);
      const auto ids = indices<std::int64_t>(random, n, rows);
      const std::size_t bytes = ferry::plan_workspace_bytes(exec, n, rows);
      auto workspace = filled_workspace(bytes + guard);
      const std::size_t elements[] = {bytes};
      const ferry::tensor_view<std::byte, ferry::device_space> exact(
          workspace.data(), ferry::shape<ferry::dynamic_rank>::make(elements, "exact", 1));
      const auto plan = ferry::make_plan(exec, ids, rows, exact, ferry::bounds::skip{});
      check_same(arrays_of<exec_space>(plan), expected_plan(ids, rows, on_bad::leave));
      const auto now = take(workspace);
      CHECK(std::vector<std::byte>(now.end() - static_cast<std::ptrdiff_t>(guard), now.end()) ==
            std::vector<std::byte>(guard, std::byte{0x5A}));
      // The arrays lie in the workspace, and nothing of the engine's is held for them.
      const auto* begin = reinterpret_cast<const std::byte*>(plan.storage()->row_of);
      CHECK((begin >= workspace.data() && begin < workspace.data() + bytes));
      CHECK(plan.storage()->memory == nullptr);
    }
}

TEST_CASE("make_plan reads indices of every space and width in a workspace", "[plan][workspace]") {
  auto random = generator(62);
  const exec_space exec;
  const std::size_t rows = 900, n = 5000;
  const auto narrow = indices<std::uint32_t>(random, n, rows);
  const auto wide = indices<std::uint64_t>(random, n, rows);
  auto workspace = filled_workspace(ferry::plan_workspace_bytes(exec, n, rows));
  const auto check = [&](const auto& ids, const auto& array) {
    const auto plan = ferry::make_plan(exec, array, rows, workspace);
    check_same(arrays_of<exec_space>(plan), expected_plan(ids, rows, on_bad::leave));
  };
  check(narrow, narrow);
  check(wide, wide);
  check(narrow, make<ferry::device_space>("indices", narrow));
  check(wide, make<ferry::pinned_space>("indices", wide));
  check(narrow, make<ferry::mapped_space>("indices", narrow));
}

TEST_CASE("one workspace serves batch after batch without waiting in between", "[plan][workspace]") {
  auto random = generator(63);
  const exec_space exec;
  const std::size_t rows = 400, width = 8, most = 3000;
  const auto content = values<float>(random, rows * width);
  auto table = make<ferry::device_space>("weights", rows, width, content);
  auto workspace = filled_workspace(ferry::plan_workspace_bytes(exec, most, rows));
  std::vector<double> expected(content.begin(), content.end());
  std::vector<float> now = content;
  std::vector<ferry::ticket> flying;
  std::vector<ferry::tensor<float, ferry::device_space>> batches;
  for (const std::size_t n : {most, std::size_t{5}, std::size_t{0}, std::size_t{1234}, most}) {
    const auto ids = indices<std::int32_t>(random, n, rows);
    const auto batch = values<float>(random, n * width);
    batches.push_back(make<ferry::device_space>("values", n, width, batch));
    const auto plan = ferry::make_plan(exec, ids, rows, workspace);
    flying.push_back(ferry::scatter_add(exec, table, plan, batches.back()));
    expected = scattered(now, width, ids, batch, true, "duplicates::sum");
    now.assign(expected.begin(), expected.end());
  }
  for (auto& ticket : flying) ticket.wait();
  CHECK(close(take(table), expected, 1e4));
}

TEST_CASE("a plan in a workspace reports bad indices as any other", "[plan][workspace][errors]") {
  const exec_space exec;
  const std::vector<int> ids{1, 2, 10, -1};
  auto workspace = filled_workspace(ferry::plan_workspace_bytes(exec, ids.size(), 10));
  ferry::tensor<float, ferry::device_space> table("weights", 10, 4), batch("batch", 4, 4);
  ferry::init::zeros(exec, batch);
  const auto plan = ferry::make_plan(exec, ids, 10, workspace);
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, plan, batch).wait(), ferry::out_of_range,
                       says("2 of 4 indices are outside of 'weights'"));
}

TEST_CASE("a workspace that does not do is refused", "[plan][workspace][errors]") {
  const exec_space exec;
  const std::vector<int> ids(100, 3);
  const std::size_t needed = ferry::plan_workspace_bytes(exec, 100, 10);
  workspace_tensor small("small", needed - 1), large("large", needed + 64), square("square", needed, 2);
  CHECK_THROWS_MATCHES(
      ferry::make_plan(exec, ids, 10, small), ferry::invalid_argument,
      says("'small' [" + std::to_string(needed - 1) + "]") &&
          says(std::to_string(needed) + " bytes are needed, " + std::to_string(needed - 1) + " given"));
  const std::size_t elements[] = {needed + 8};
  const ferry::tensor_view<std::byte, ferry::device_space> odd(
      large.data() + 8, ferry::shape<ferry::dynamic_rank>::make(elements, "odd", 1));
  CHECK_THROWS_MATCHES(
      ferry::make_plan(exec, ids, 10, odd), ferry::invalid_argument,
      says("begins 8 bytes after a multiple of 16") && says(std::to_string(needed) + " bytes are needed"));
  CHECK_THROWS_MATCHES(ferry::make_plan(exec, ids, 10, square), ferry::invalid_argument,
                       says("must be contiguous and of rank 1"));
  CHECK_NOTHROW(ferry::make_plan(exec, ids, 10, large));
  CHECK_THROWS_AS(ferry::make_plan(exec, ids, -1, large), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::plan_workspace_bytes(exec, -1, 10), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::plan_workspace_bytes(exec, 10, -1), ferry::invalid_argument);
}

TEST_CASE("plan_workspace_bytes grows with the batch", "[plan][workspace]") {
  const exec_space exec;
  std::size_t last = 0;
  for (const std::int64_t n : {0, 1, 2, 100, 4096, 4097, 100000, 1000000}) {
    const std::size_t bytes = ferry::plan_workspace_bytes(exec, n, 1000);
    CHECK(bytes >= last);
    CHECK(bytes >= static_cast<std::size_t>(n) * 7 * sizeof(std::int64_t));
    last = bytes;
  }
}

}  // namespace ferry_test::plan_workspace_test
