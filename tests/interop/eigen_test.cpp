// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/interop/eigen.hpp>

namespace ferry_test::eigen_test {

using by_rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEMPLATE_TEST_CASE("a table in host memory is an Eigen::Map", "[eigen]", ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  const auto contents = values<float>(random, 35);
  auto table = make<TestType>("table", 7, 5, contents);
  auto map = ferry::to_eigen(table);
  STATIC_CHECK(std::is_same_v<decltype(map), Eigen::Map<by_rows>>);
  CHECK(map.data() == table.data());
  REQUIRE((map.rows() == 7 && map.cols() == 5));
  CHECK(map(6, 4) == contents[34]);
  map(2, 3) = 42.0f;
  CHECK(table(2, 3) == 42.0f);

  const auto constant = ferry::to_eigen(std::as_const(table));
  STATIC_CHECK(std::is_same_v<std::remove_const_t<decltype(constant)>, Eigen::Map<const by_rows>>);
  CHECK(constant(6, 4) == contents[34]);
  const auto middle = ferry::to_eigen(table.rows_between(2, 4));
  CHECK((middle.rows() == 2 && middle(0, 3) == 42.0f));
  CHECK(ferry::to_eigen(table.view()).data() == table.data());

  ferry::tensor<double, TestType, ferry::extents<ferry::dyn, 3>> fixed("fixed", 4);
  STATIC_CHECK(decltype(ferry::to_eigen(fixed))::ColsAtCompileTime == 3);
  ferry::tensor<double, TestType, ferry::extents<ferry::dyn>> line("line", 9);
  STATIC_CHECK(decltype(ferry::to_eigen(line))::IsVectorAtCompileTime == 1);
  CHECK(ferry::to_eigen(line).size() == 9);
  ferry::tensor<double, TestType> cube("cube", 2, 3, 4);
  CHECK(ferry::to_eigen(cube).cols() == 12);
}

TEST_CASE("verbs take Eigen's matrices and vectors", "[eigen]") {
  auto random = generator();
  const exec_space exec;
  const auto contents = values<float>(random, 40);
  const auto table = make<ferry::mapped_space>("table", 10, 4, contents);
  Eigen::VectorXi indices(3);
  indices << 9, 0, 4;
  by_rows batch = by_rows::Constant(3, 4, -1.0f);
  ferry::gather(exec, table, indices, batch).wait();
  const auto expected = ferry::to_eigen(table);
  for (int p = 0; p < 3; ++p) CHECK(batch.row(p) == expected.row(indices[p]));

  SECTION("maps, blocks and fixed sizes") {
    std::vector<float> memory(12, -1.0f);
    Eigen::Map<by_rows> map(memory.data(), 3, 4);
    ferry::gather(exec, table, indices, map).wait();
    CHECK(map == batch);
    by_rows wide = by_rows::Constant(5, 6, -1.0f);
    auto block = wide.block(1, 2, 3, 4);  // a row stride above the width
    ferry::gather(exec, table, indices, block).wait();
    CHECK(block == batch);
    CHECK((wide(0, 2) == -1.0f && wide(1, 1) == -1.0f && wide(4, 5) == -1.0f));
    Eigen::Matrix<float, 3, 4, Eigen::RowMajor> fixed;
    STATIC_CHECK(ferry::array_traits<decltype(fixed)>::static_width == 4);
    ferry::gather(exec, table, indices, fixed).wait();
    CHECK(fixed == batch);
    Eigen::Ref<by_rows> reference(batch);
    batch.setZero();
    ferry::gather(exec, table, indices, reference).wait();
    CHECK(batch == fixed);
  }
  SECTION("a table of Eigen's, written and stepped") {
    by_rows matrix = by_rows::Zero(10, 4);
    ferry::scatter(exec, matrix, indices, batch).wait();
    for (int p = 0; p < 3; ++p) CHECK(matrix.row(indices[p]) == batch.row(p));
    const by_rows gradients = by_rows::Constant(3, 4, 1.0f);
    const auto sgd = ferry::optim::sgd{.lr = 0.5};
    auto state = ferry::optim::make_state(sgd, matrix);
    ferry::step(exec, sgd, matrix, state, indices, gradients).wait();
    for (int p = 0; p < 3; ++p)
      for (int j = 0; j < 4; ++j) CHECK(matrix(indices[p], j) == batch(p, j) - 0.5f);
  }
  SECTION("a column with a stride is no index list") {
    const Eigen::MatrixXi two = Eigen::MatrixXi::Zero(2, 3);
    const auto row = two.row(0);
    CHECK_THROWS_MATCHES(
        ferry::gather(exec, table, row, batch), ferry::invalid_argument,
        MessageMatches(ContainsSubstring("'Eigen matrix' [3]") && ContainsSubstring("strided")));
  }
}

TEST_CASE("copy takes Eigen's column-major matrices", "[eigen]") {
  auto random = generator();
  const exec_space exec;
  const auto contents = values<float>(random, 21);
  const auto table = make<ferry::device_space>("table", 7, 3, contents);
  Eigen::MatrixXf columns = Eigen::MatrixXf::Constant(7, 3, -1.0f);
  ferry::copy(exec, table, columns).wait();
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 3; ++j) CHECK(columns(i, j) == contents[static_cast<std::size_t>(3 * i + j)]);
  const Eigen::ArrayXXd doubled = columns.cast<double>() * 2.0;
  ferry::tensor<double, ferry::device_space> back("back", 7, 3);
  ferry::copy(exec, doubled, back).wait();
  const auto got = take(back);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == 2.0 * static_cast<double>(contents[i]));
  const auto constant = std::as_const(columns);
  STATIC_CHECK(std::is_const_v<std::remove_pointer_t<decltype(ferry::make_ref(constant).data)>>);
}

}  // namespace ferry_test::eigen_test
