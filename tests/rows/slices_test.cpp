// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

/// Slices where verbs take tensors: nothing outside of them is read or written, and verbs on them keep the order of
/// the tensors' reads and writes.
namespace ferry_test::slices_test {

constexpr std::size_t rows = 120, width = 6, first = 20, end = 100, n = 70;

template <class T>
std::vector<T> part(const std::vector<T>& whole, std::size_t begin, std::size_t count) {
  const auto start = whole.begin() + static_cast<std::ptrdiff_t>(begin);
  return {start, start + static_cast<std::ptrdiff_t>(count)};
}

/// `whole` with the elements from `begin` on replaced.
template <class T, class U>
std::vector<T> with_part(std::vector<T> whole, std::size_t begin, const std::vector<U>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) whole[begin + i] = static_cast<T>(values[i]);
  return whole;
}

using table_and_batch = zipped<decltype(spaces), decltype(spaces), 1>;

TEMPLATE_LIST_TEST_CASE("rows of slices are gathered and scattered", "[slice]", table_and_batch) {
  using table_space = at<0, TestType>;
  using batch_space = at<1, TestType>;
  auto random = generator(171);
  const exec_space exec;
  const auto content = values<float>(random, rows * width);
  const auto batch_values = values<float>(random, (n + 10) * width);
  const auto ids = indices<std::int32_t>(random, n + 9, end - first);
  const auto unique = unique_indices<std::int64_t>(random, n, end - first);
  auto table = make<table_space>("table", rows, width, content);
  auto batch = make<batch_space>("batch", n + 10, width, batch_values);
  const auto list = make<ferry::pinned_space>("list", ids);
  const auto rows_of_batch = part(ids, 4, n);
  const auto gathered_rows = gathered(part(content, first * width, (end - first) * width), width,
                                      rows_of_batch, std::vector<float>(n * width));

  for_covering_paths<table_space, batch_space, work::moves>([&](auto path) {
    put(batch, batch_values);
    ferry::gather(exec, std::as_const(table).rows_between(first, end), list.rows_between(4, n + 4),
                  batch.rows_between(3, n + 3), path)
        .wait();
    CHECK(same_bits(take(batch), with_part(batch_values, 3 * width, gathered_rows)));
    const auto plan = ferry::make_plan(exec, list.rows_between(4, n + 4), end - first);
    put(batch, batch_values);
    ferry::gather(exec, table.rows_between(first, end), plan, batch.first(n), path).wait();
    CHECK(same_bits(take(batch), with_part(batch_values, 0, gathered_rows)));
  });

  put(batch, batch_values);
  ferry::scatter(exec, table.rows_between(first, end), unique, batch.rows_between(5, n + 5)).wait();
  const auto replaced = scattered(part(content, first * width, (end - first) * width), width, unique,
                                  part(batch_values, 5 * width, n * width), false, "duplicates::last");
  CHECK(same_bits(take(table), with_part(content, first * width, replaced)));

  put(table, content);
  ferry::scatter_add(exec, table.rows_between(first, end), unique, std::as_const(batch).first(n)).wait();
  const auto added = scattered(part(content, first * width, (end - first) * width), width, unique,
                               part(batch_values, 0, n * width), true, "duplicates::sum");
  CHECK(same_bits(take(table), with_part(content, first * width, added)));

  put(table, content);
  ferry::copy(exec, batch.first(30), table.rows_between(first, first + 30)).wait();
  CHECK(same_bits(take(table), with_part(content, first * width, part(batch_values, 0, 30 * width))));
  ferry::init::constant(exec, table.first(2), 7.0);
  CHECK(take(table)[2 * width - 1] == 7.0f);
  CHECK(take(table)[2 * width] == content[2 * width]);

  const auto result =
      ferry::gather<table_space>(exec, table.rows_between(0, 4), std::vector<std::int64_t>{3}).get();
  CHECK(same_bits(take(result), part(content, 3 * width, width)));
}

TEMPLATE_TEST_CASE("a step takes slices for table and gradients", "[slice]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator(172);
  const exec_space exec;
  const auto content = values<float>(random, rows * width);
  const auto gradients = values<float>(random, (n + 10) * width);
  const auto ids = unique_indices<std::int64_t>(random, n, end - first);
  auto table = make<TestType>("table", rows, width, content);
  const auto grads = make<ferry::pinned_space>("grads", n + 10, width, gradients);
  auto part_of_table = table.rows_between(first, end);
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, part_of_table);
  ferry::step(exec, rule, part_of_table, state, ids, grads.rows_between(7, n + 7)).wait();
  ferry::step(exec, rule, table.rows_between(first, end), state, ids, grads.first(n)).wait();
  auto expected = content;
  for (const std::size_t shift : {std::size_t{7}, std::size_t{0}})
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        expected[(first + static_cast<std::size_t>(ids[p])) * width + c] -=
            0.5f * gradients[(shift + p) * width + c];
  CHECK(close(take(table), std::vector<double>(expected.begin(), expected.end()), 200.0));
  CHECK(same_bits(part(take(table), 0, first * width), part(content, 0, first * width)));
  CHECK(same_bits(part(take(table), end * width, (rows - end) * width),
                  part(content, end * width, (rows - end) * width)));
}

TEST_CASE("slices of one tensor may be table and batch where they have no row in common", "[slice]") {
  auto random = generator(173);
  const exec_space exec;
  const auto content = values<double>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, content);
  const std::vector<std::int32_t> ids{4, 0, 19};
  ferry::gather(exec, table.first(20), ids, table.rows_between(20, 23)).wait();
  CHECK(same_bits(take(table), with_part(content, 20 * width,
                                         gathered(part(content, 0, 20 * width), width, ids,
                                                  std::vector<double>(3 * width)))));
  CHECK_THROWS_MATCHES(ferry::gather(exec, table.first(21), ids, table.rows_between(20, 23)).wait(),
                       ferry::invalid_argument, MessageMatches(ContainsSubstring("overlap")));
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, table.first(20), std::vector<std::int32_t>{20}, table.rows_between(20, 21)).wait(),
      ferry::out_of_range, MessageMatches(ContainsSubstring("'table' [20 x 6]")));
}

TEST_CASE("tables of 8-bit rows take slices", "[slice]") {
  auto random = generator(174);
  const exec_space exec;
  const auto content = values<float>(random, rows * width);
  auto table = make<ferry::pinned_space>("table", rows, width, content);
  ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 50, width), second("other", 50, width);
  ferry::quantize(exec, table.rows_between(10, 60), codes).wait();
  const auto copied = make<ferry::pinned_space>("copied", 50, width, part(content, 10 * width, 50 * width));
  ferry::quantize(exec, copied, second).wait();
  ferry::tensor<float, ferry::pinned_space> expected("expected", 50, width);
  ferry::dequantize(exec, second, expected).wait();
  ferry::dequantize(exec, codes, table.first(50)).wait();
  CHECK(same_bits(part(take(table), 0, 50 * width), take(expected)));
  CHECK(same_bits(part(take(table), 50 * width, 70 * width), part(content, 50 * width, 70 * width)));
  const std::vector<std::int32_t> ids{7, 49};
  ferry::gather(exec, codes, ids, table.rows_between(60, 62)).wait();
  CHECK(same_bits(part(take(table), 60 * width, 2 * width),
                  gathered(take(expected), width, ids, std::vector<float>(2 * width))));
  ferry::scatter(exec, codes, ids, table.rows_between(60, 62)).wait();
}

TEST_CASE("host code comes after the work that is in ticket_state on any part of a slice's tensor",
          "[slice]") {
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
  const Kokkos::DefaultHostExecutionSpace exec;
  auto table = make<ferry::mapped_space>("table", 4, 1, std::vector<float>{1, 2, 3, 4});
  auto batch = make<ferry::mapped_space>("batch", 4, 1, std::vector<float>(4, 0.0f));
  const std::vector<std::int64_t> ids{1, 0};
  const auto write_late = [](auto& array, std::size_t position, float value) {
    array.accesses()->add_write(
        std::make_shared<late_write>([data = array.data(), position, value] { data[position] = value; }), 7);
  };
  write_late(table, 2, 30.0f);
  ferry::gather(exec, table.rows_between(2, 4), ids, batch.first(2)).wait();
  CHECK(take(batch) == std::vector<float>{4, 30, 0, 0});
  write_late(batch, 0, 9.0f);  // the earlier write must not come after the gather's
  ferry::gather(exec, table.first(2), ids, batch.first(2)).wait();
  batch.accesses()->wait_for_all();
  CHECK(take(batch) == std::vector<float>{2, 1, 0, 0});
}

TEST_CASE("instances that use slices of the same tensors are ordered", "[slice][instances]") {
  constexpr std::size_t many = 20000, wide = 32;
  const auto exec = [] {
    if constexpr (ferry::detail::is_host_exec<exec_space>)
      return std::vector<exec_space>(2);
    else
      return Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>(2, 1));
  }();
  std::vector<std::int64_t> every(many);
  for (std::size_t i = 0; i < many; ++i) every[i] = static_cast<std::int64_t>(i);
  const auto device_ids = make<ferry::device_space>("which", every);
  const auto constant = [](float value) { return std::vector<float>(many * wide, value); };
  const ferry::duplicates::assume_unique unique;
  const ferry::path::direct direct;
  for (int round = 0; round < 5; ++round) {
    auto table =
        make<ferry::device_space>("table", 2 * many, wide, std::vector<float>(2 * many * wide, 0.0f));
    const auto ones = make<ferry::device_space>("ones", many, wide, constant(1));
    ferry::tensor<float, ferry::device_space> batch("batch", 2 * many, wide);
    for (int i = 0; i < 10; ++i)
      ferry::scatter_add(exec[0], table.rows_between(many, 2 * many), device_ids, ones, direct, unique)
          .detach();
    ferry::gather(exec[1], table.rows_between(many, 2 * many), device_ids.first(many), batch.first(many),
                  direct)
        .detach();
    for (int i = 0; i < 5; ++i)
      ferry::scatter_add(exec[0], table.rows_between(many, 2 * many), device_ids, batch.first(many), direct,
                         unique)
          .detach();
    ferry::gather(exec[1], table.rows_between(many, 2 * many), device_ids, batch.rows_between(many, 2 * many),
                  direct)
        .wait();
    auto expected = constant(10);
    const auto more = constant(60);
    expected.insert(expected.end(), more.begin(), more.end());
    CHECK(take(batch) == expected);
  }
}

TEST_CASE("rows move in packets if their stride has 32 bits without a sign", "[rows]") {
  alignas(64) float element = 0;
  ferry::detail::array_ref<float, ferry::pageable_space> array;
  array.data = &element;
  array.rank = 2;
  array.extents = {3, 8};
  for (const std::int64_t stride : {std::int64_t{0}, std::int64_t{8}, (std::int64_t{1} << 32) - 4}) {
    array.strides = {stride, 1};
    CHECK(ferry::detail::in_packets<4>(array));
  }
  for (const std::int64_t stride : {std::int64_t{-8}, std::int64_t{1} << 32, std::int64_t{9}}) {
    array.strides = {stride, 1};
    CHECK_FALSE(ferry::detail::in_packets<4>(array));
  }
}

}  // namespace ferry_test::slices_test
