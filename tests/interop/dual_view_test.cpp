// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/interop/dual_view.hpp>

namespace ferry_test::dual_view_test {

template <class T>
using dual_rows = Kokkos::DualView<T**, Kokkos::LayoutRight>;

TEST_CASE("verbs use the device's side of a DualView and mark it", "[dual_view]") {
  auto random = generator();
  const exec_space exec;
  const auto contents = values<float>(random, 40);
  dual_rows<float> table("dual table", 10, 4);
  for (std::size_t i = 0; i < 40; ++i) table.view_host()(i / 4, i % 4) = contents[i];
  table.modify_host();
  table.sync_device();
  Kokkos::DualView<std::int32_t*> indices("indices", 3);
  indices.view_host()(0) = 9;
  indices.view_host()(1) = 0;
  indices.view_host()(2) = 4;
  indices.modify_host();
  indices.sync_device();
  dual_rows<float> batch("batch", 3, 4);
  ferry::gather(exec, table, indices, batch).wait();
  CHECK_FALSE(table.need_sync_host());  // it was only read
  constexpr bool two_sides = !dual_rows<float>::impl_dualview_is_single_device;
  CHECK(batch.need_sync_host() == two_sides);
  batch.sync_host();
  for (std::size_t p = 0; p < 3; ++p)
    for (std::size_t j = 0; j < 4; ++j)
      CHECK(batch.view_host()(p, j) == contents[4 * static_cast<std::size_t>(indices.view_host()(p)) + j]);

  ferry::init::constant(exec, batch, 5.0f);
  ferry::scatter(exec, table, indices, batch).wait();
  CHECK(table.need_sync_host() == two_sides);
  table.sync_host();
  CHECK((table.view_host()(9, 3) == 5.0f && table.view_host()(1, 0) == contents[4]));
  STATIC_CHECK(std::is_const_v<decltype(ferry::make_ref(std::as_const(table)))::value_type>);

  // A host instance uses the host's side.
  ferry::gather(Kokkos::DefaultHostExecutionSpace(), table.view_host(), indices.view_host(),
                batch.view_host())
      .wait();
  CHECK(batch.view_host()(0, 0) == 5.0f);

  if constexpr (two_sides) {
    batch.clear_sync_state();  // Kokkos refuses two sides that were both modified
    batch.modify_host();
    CHECK_THROWS_MATCHES(ferry::gather(exec, table, indices, batch), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring("'batch'") && ContainsSubstring("sync_device()")));
    CHECK_THROWS_AS(ferry::scatter(exec, table, indices, std::as_const(batch)), ferry::invalid_argument);
  }
}

TEMPLATE_TEST_CASE("a tensor that host and device reach is a DualView", "[dual_view]", ferry::pinned_space,
                   ferry::mapped_space) {
  const exec_space exec;
  ferry::tensor<float, TestType> table("table", 6, 4);
  ferry::init::constant(exec, table, 1.0f);
  auto dual = ferry::to_dual_view(table);
  CHECK(dual.view_device().data() == table.data());
  CHECK(dual.view_host().data() == table.data());
  CHECK((dual.extent(0) == 6 && dual.extent(1) == 4));
  dual.view_host()(2, 3) = 7.0f;
  dual.modify_host();
  dual.sync_device();
  const std::vector<int> rows{2};
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 4);
  ferry::gather(exec, dual, rows, batch).wait();
  CHECK(take(batch) == std::vector<float>{1.0f, 1.0f, 1.0f, 7.0f});
  ferry::init::constant(exec, dual, 3.0f);
  dual.sync_host();
  CHECK(table(5, 3) == 3.0f);
  ferry::tensor<int, TestType, ferry::extents<ferry::dyn>> line("line", 5);
  STATIC_CHECK(decltype(ferry::to_dual_view(line))::t_dev::rank() == 1);
}

}  // namespace ferry_test::dual_view_test
