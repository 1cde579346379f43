// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/memory/detail/changed_rows.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// Marks listed rows: one iteration per number that may name one. A mark is a byte, so threads that mark
/// neighbours, or the same row, need no atomic operations.
struct mark_listed_rows {
  unsigned char* marks;
  std::int64_t rows;
  detail::listed_numbers numbers;
  detail::row_shift shift;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = numbers.row(numbers.begin() + i);
    if (row < 0) return;
    for (std::int64_t k = shift.first; k <= shift.last; ++k)
      if (row + k >= 0 && row + k < rows) marks[row + k] = 1;
  }
};

/// Marks neighbouring rows: one iteration per row.
struct mark_row_range {
  unsigned char* marks;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { marks[i] = 1; }
};

/// Moves marks: one iteration per row. A kernel on another instance may set a mark meanwhile. A mark that is
/// set between the look and the reset is lost, but the row was found marked, and both writes have ended; a
/// row that was not found marked is not reset.
struct take_marks {
  unsigned char* marks;
  unsigned char* result;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const unsigned char mark = marks[i];
    result[i] = mark;
    if (mark != 0) marks[i] = 0;
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Marks in the memory of Kokkos' default device, set by instances of Exec.
template <class Exec>
class marks_on final : public device_marks {
 public:
  using backend = execution_backend<Exec>;
  using memory = device_backend<std::conditional_t<std::is_void_v<Exec>, void, device_space>>;

  explicit marks_on(std::int64_t rows)
      : device_(backend::device_of(Exec{})),
        marks_("checkpoint::changed_rows", static_cast<std::size_t>(rows)),
        result_("checkpoint::taken_rows", static_cast<std::size_t>(rows)) {
    marks_.accesses()->note_untracked_use();
    const std::vector<unsigned char> none(marks_.size());
    if (!none.empty()) memory::write(marks_.data(), none.data(), none.size());
  }

  bool mark(const void* exec, int device, const std::string& label, const listed_numbers& numbers,
            const row_shift& shift) override {
    if (device != device_) return false;
    launch(*static_cast<const Exec*>(exec), label, shift.first > shift.last ? 0 : numbers.most(),
           kernels::mark_listed_rows{marks_.data(), rows(), numbers, shift});
    return true;
  }
  bool mark(const void* exec, int device, const std::string& label, std::int64_t begin,
            std::int64_t end) override {
    if (device != device_) return false;
    launch(*static_cast<const Exec*>(exec), label, end - begin,
           kernels::mark_row_range{marks_.data() + begin});
    return true;
  }
  void take(std::vector<unsigned char>& result) override {
    result.resize(marks_.size());
    if (result.empty()) return;
    static const std::string label = "ferry::checkpoint::take_marks";
    const Exec home;
    const typename backend::device_guard guard(home);  // Kokkos leaves its own device current
    const auto side = engine::get(home)->side_streams().take(home);
    launch(*side, label, rows(), kernels::take_marks{marks_.data(), result_.data()});
    backend::fence(*side, label);
    memory::read(result.data(), result_.data(), result.size());
  }

 private:
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(marks_.size()); }

  int device_;
  tensor<unsigned char, device_space> marks_;
  tensor<unsigned char, device_space> result_;
};

/// Marks that kernels of Kokkos' default execution space set; null if that runs on the host.
template <class Exec>
std::unique_ptr<device_marks> device_marks_for([[maybe_unused]] std::int64_t rows) {
  if constexpr (is_host_exec<Exec>)
    return nullptr;
  else
    return std::make_unique<marks_on<Exec>>(rows);
}

}  // namespace ferry::detail
