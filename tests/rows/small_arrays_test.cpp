// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// std::array and arrays of the language as indices and batches, and views that are deduced from a pointer.
namespace ferry_test::small_arrays_test {

constexpr std::size_t rows = 6, width = 4;

/// 0, 1, 2, ...
std::vector<float> counted(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

/// Gather, scatter, scatter_add, step and make_plan by the indices 4, 0, 3, whatever they come in.
template <class Indices>
void every_verb_takes(const Indices& indices) {
  const exec_space exec;
  const std::vector<std::size_t> named{4, 0, 3};
  const auto start = counted(rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  ferry::tensor<float, ferry::device_space> batch("batch", named.size(), width);
  std::vector<float> gathered;
  for (const auto row : named)
    for (std::size_t c = 0; c < width; ++c) gathered.push_back(start[row * width + c]);

  ferry::gather(exec, table, indices, batch).wait();
  CHECK(take(batch) == gathered);
  ferry::gather(exec, table, ferry::make_plan(exec, indices, rows), batch).wait();
  CHECK(take(batch) == gathered);
  auto arriving = ferry::gather<ferry::pinned_space>(exec, table, indices);
  CHECK(take(arriving.get()) == gathered);

  const auto values = counted(named.size() * width);
  put(batch, values);
  auto expected = start;
  const auto change = [&](const auto& update) {
    for (std::size_t p = 0; p < named.size(); ++p)
      for (std::size_t c = 0; c < width; ++c) update(expected[named[p] * width + c], values[p * width + c]);
  };
  ferry::scatter(exec, table, indices, batch).wait();
  change([](float& weight, float value) { weight = value; });
  CHECK(take(table) == expected);
  ferry::scatter_add(exec, table, indices, batch).wait();
  change([](float& weight, float value) { weight += value; });
  CHECK(take(table) == expected);
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, indices, batch).wait();
  change([](float& weight, float value) { weight -= 0.5F * value; });
  CHECK(take(table) == expected);
}

TEST_CASE("arrays whose type says their length are indices", "[small_arrays]") {
  every_verb_takes(std::array{4, 0, 3});
  const std::array<std::int64_t, 3> wide{4, 0, 3};
  every_verb_takes(wide);
  std::array<std::uint32_t, 3> changing{4, 0, 3};
  every_verb_takes(changing);
  every_verb_takes(std::array<const std::uint64_t, 3>{4, 0, 3});
  int plain[] = {4, 0, 3};
  every_verb_takes(plain);
  const std::uint64_t fixed[] = {4, 0, 3};
  every_verb_takes(fixed);
}

TEST_CASE("arrays whose type says their length are tables and batches of one element a row",
          "[small_arrays]") {
  const exec_space exec;
  const std::array<double, 5> table{10.0, 11.0, 12.0, 13.0, 14.0};
  std::array<double, 2> batch{};
  ferry::gather(exec, table, std::array{3, 1}, batch).wait();
  CHECK(batch == std::array{13.0, 11.0});
  double plain[3] = {1.0, 2.0, 3.0};
  ferry::scatter_add(exec, plain, std::array{2, 2}, batch).wait();
  CHECK(plain[0] == 1.0);
  CHECK(plain[1] == 2.0);
  CHECK(plain[2] == 27.0);
  ferry::init::zeros(exec, plain);
  CHECK(plain[2] == 0.0);

  // Copied, they stand for any extents with as many elements.
  const auto matrix = make<ferry::device_space>("matrix", 2, 3, counted(6));
  std::array<float, 6> flat{};
  ferry::copy(exec, matrix, flat).wait();
  CHECK(flat == std::array{0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F});
  float language[6];
  ferry::copy(exec, matrix, language).wait();
  CHECK(std::vector<float>(language, language + 6) == counted(6));
  std::array<float, 5> short_of_one{};
  CHECK_THROWS_MATCHES(ferry::copy(exec, matrix, short_of_one), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("'array' [5]")));
}

TEST_CASE("a pointer with rows and width is a table in host memory", "[small_arrays]") {
  const exec_space exec;
  auto memory = counted(rows * width);
  std::vector<float> into(2 * width);
  const ferry::tensor_view table(memory.data(), rows, width);
  STATIC_CHECK(std::is_same_v<decltype(table), const ferry::tensor_view<float, ferry::pageable_space>>);
  ferry::gather(exec, table, std::array{5, 1}, ferry::tensor_view(into.data(), 2, width)).wait();
  for (std::size_t c = 0; c < width; ++c) {
    CHECK(into[c] == memory[5 * width + c]);
    CHECK(into[width + c] == memory[width + c]);
  }
  const std::vector<int> ids{5, 1};
  ferry::gather(exec, table, ferry::tensor_view(ids.data(), 2), ferry::tensor_view(into.data(), 2, width))
      .wait();
  CHECK(into[0] == memory[5 * width]);
}

TEST_CASE("a tensor that was moved from is said to be one", "[errors]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", rows, width), batch("batch", 1, width);
  const auto owner = std::move(table);
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, table, std::array{1}, batch), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("ferry::gather: ") && ContainsSubstring("moved from")));
}

}  // namespace ferry_test::small_arrays_test
