// SPDX-License-Identifier: Apache-2.0
// Arrays of other libraries. See xfail.py.
#include "arrays.hpp"

#include <Kokkos_DualView.hpp>
#include <ferry/interop/dlpack.hpp>
#include <ferry/interop/dual_view.hpp>
#include <ferry/interop/eigen.hpp>
#include <ferry/interop/mdspan.hpp>
#include <ferry/interop/thrust.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

// ---- dlpack_from_capsule: A capsule's pointer has no type.
// expected-error: from_dlpack takes a DLManagedTensorVersioned\* or a DLManagedTensor\*
void refused([[maybe_unused]] void* pointer) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::from_dlpack<float, ferry::pageable_space>(static_cast<DLManagedTensor*>(pointer)));
#else
  static_cast<void>(ferry::from_dlpack<float, ferry::pageable_space>(pointer));
#endif
}

// ---- dlpack_of_const_to_legacy: The old struct has no flag for it.
// expected-error: a DLManagedTensor can't say that its array is read-only
using table [[maybe_unused]] = ferry::tensor<float, ferry::pageable_space>;
// legal: auto* const out = ferry::to_dlpack<DLManagedTensor>(std::make_shared<table>("table", 10, 4));
auto* const out = ferry::to_dlpack<DLManagedTensor>(std::make_shared<const table>("table", 10, 4));
out->deleter(out);

// ---- dlpack_of_number: What to_dlpack makes is one of two structs, and nothing else is one.
// expected-error: to_dlpack makes a DLManagedTensorVersioned, or, with that as template argument, a DLManagedTensor
ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
// legal: auto* const out = ferry::to_dlpack<DLManagedTensor>(std::move(table));
auto* const out = ferry::to_dlpack<DLTensor>(std::move(table));
out->deleter(out);

// ---- dlpack_of_slice: A slice does not keep its tensor alive.
// expected-error: to_dlpack takes a ferry::tensor, a ferry::read_only_tensor or a std::shared_ptr to one
ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
// legal: auto* const out = ferry::to_dlpack(std::move(table));
auto* const out = ferry::to_dlpack(table.first(3));
out->deleter(out);

// ---- dlpack_of_structs: DLPack has no structs.
// expected-error: DLPack describes numbers, bool and complex numbers only, no structs
struct dlpack_refuses {
  int id;
  float score;
};

void refused() {
  // legal: ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
  ferry::tensor<dlpack_refuses, ferry::pageable_space> table("table", 10, 4);
  auto* const out = ferry::to_dlpack(std::move(table));
  out->deleter(out);
}

// ---- dlpack_without_move: Whose is the memory afterwards?
// expected-error: to_dlpack takes the tensor over; write std::move\(tensor\)
ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
// legal: auto* const out = ferry::to_dlpack(std::move(table));
auto* const out = ferry::to_dlpack(table);
out->deleter(out);

// ---- dual_view_of_pageable: The device's side must be memory that the device reaches.
// expected-error: both sides of the DualView are the memory of the tensor, which must be in pinned_space or
// mapped_space
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#endif
static_cast<void>(ferry::to_dual_view(table));

// ---- eigen_column_major_table: Eigen's default is column-major.
// expected-error: verbs that work on rows take row-major arrays only; .* the Eigen matrix Eigen::RowMajor
void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  ferry::tensor<float, ferry::mapped_space> table("table", 10, 4);
  const std::vector<int> indices{1, 2};
  // legal: Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(2, 4);
  Eigen::MatrixXf rows(2, 4);
  ferry::gather(exec, table, indices, rows).wait();
}

// ---- eigen_expression: A sum has no memory.
// expected-error: tables and batches must be a ferry::tensor
void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> table(10, 4);
  table.setZero();
  const std::vector<int> indices{1, 2};
  ferry::tensor<float, ferry::mapped_space> rows("rows", 2, 4);
  // legal: ferry::gather(exec, table, indices, rows).wait();
  ferry::gather(exec, table + table, indices, rows).wait();
}

// ---- eigen_of_device: Eigen runs on the host.
// expected-error: Eigen computes on the host, which can't rely on reaching device_space
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
ferry::to_eigen(table).setZero();

// ---- mdspan_column_major_table: The rows of layout_left are no rows in memory.
// expected-error: verbs that work on rows take row-major arrays only; .* the mdspan layout_right
void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  using namespace ferry::detail::mdspans;
  std::vector<float> memory(40);
  const std::vector<int> indices{1, 2};
  ferry::tensor<float, ferry::mapped_space> rows("rows", 2, 4);
  // legal: using layout = layout_right;
  using layout = layout_left;
  const mdspan<float, dextents<std::size_t, 2>, layout> table(memory.data(), 10, 4);
  ferry::gather(exec, table, indices, rows).wait();
}

// ---- mdspan_of_device: The default accessor is for code of the host.
// expected-error: an mdspan with the default accessor is for host code, which can't rely on reaching device_space
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<float, ferry::device_space> table("table", 10, 4);
#endif
static_cast<void>(ferry::to_mdspan(table));

// ---- mdspan_of_rank_nine: An array_ref has room for eight extents.
// expected-error: an array has at most 8 extents
using namespace ferry::detail::mdspans;
// legal: constexpr std::size_t rank = 8;
constexpr std::size_t rank = 9;
using span = mdspan<float, dextents<std::size_t, rank>>;
static_cast<void>(ferry::array_traits<span>::ref(span()));

// ---- table_of_mdspan: It says neither which space it is in nor how its rows lie.
// expected-errors: 1 tables and batches must be .* ferry::tensor_view\(pointer, rows, width\)
/// As std::mdspan is, which not every compiler has.
struct mdspan {
  float* first;
  [[nodiscard]] float* data_handle() const { return first; }
  [[nodiscard]] std::array<int, 2> extents() const { return {10, 4}; }
  [[nodiscard]] int mapping() const { return 0; }
};

void refused() {
  const mdspan rows{nullptr};
  // legal: const ferry::tensor_view view(rows.data_handle(), rows.extents()[0], rows.extents()[1]);
  // legal: ferry::gather(exec, view, indices, batch).wait();
  ferry::gather(exec, rows, indices, batch).wait();
}

// ---- thrust_of_pageable: Thrust's kernels would read ordinary memory.
// expected-error: Thrust's kernels don't reach pageable_space
struct thrust_of_pageable_pointer {
  using raw_pointer = float*;
  explicit thrust_of_pageable_pointer(float* data) : pointer(data) {}
  float* get() const { return pointer; }
  float* pointer;
};

void refused() {
#ifdef FERRY_XFAIL_FIXED
#else
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#endif
  static_cast<void>(ferry::to_thrust<thrust_of_pageable_pointer>(table));
}
