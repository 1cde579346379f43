// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include <ferry/extend.hpp>

/// A kind of table of its own, in one file: a table whose rows lie in pages, each of which is an allocation.
/// gather, gather_unique, scatter, scatter_add, step, gather_bags and step_bags take it. ferry/extend.hpp publishes
/// all that it uses of ferry's inside.
namespace ferry_test {

inline constexpr int most_pages = 8;

template <class T, class Space>
struct paged_table {
  std::vector<ferry::tensor<T, Space>> pages;
  std::int64_t rows = 0, rows_per_page = 1, width = 0;
};

/// The page of a row, and numbers of pages that kernels add.
struct page_numbers {
  std::int64_t rows_per_page = 1;
  std::int64_t number[most_pages] = {};

  KOKKOS_FUNCTION std::int64_t of_row(std::int64_t row) const { return number[row / rows_per_page]; }
};

/// The items of a source, at places in units after the lowest page.
template <class Source>
struct paged_items {
  Source source;
  page_numbers begin;
  std::int64_t row_units;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool record) const {
    const std::int64_t row = source.row(item, record);
    return row < 0 ? row : begin.of_row(row) + row % begin.rows_per_page * row_units;
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

/// The rows for kernels that read.
template <class T>
struct paged_rows {
  using value_type = T;

  const T* lowest = nullptr;
  const T* pages[most_pages] = {};
  std::int64_t rows_per_page = 1, width = 0;

  [[nodiscard]] std::int64_t row_bytes() const { return width * static_cast<std::int64_t>(sizeof(T)); }
  friend bool in_units_of(std::size_t bytes, const paged_rows& rows) {
    bool whole = static_cast<std::size_t>(rows.row_bytes()) % bytes == 0;
    for (const T* page : rows.pages) whole = whole && reinterpret_cast<std::uintptr_t>(page) % bytes == 0;
    return whole;
  }
  template <class Source>
  friend auto read_in_units(std::size_t bytes, const paged_rows& rows, const Source& source) {
    paged_items<Source> items{
        source, {rows.rows_per_page, {}}, rows.row_bytes() / static_cast<std::int64_t>(bytes)};
    for (int p = 0; p < most_pages; ++p)
      if (rows.pages[p] != nullptr)
        items.begin.number[p] = static_cast<std::int64_t>((reinterpret_cast<std::uintptr_t>(rows.pages[p]) -
                                                           reinterpret_cast<std::uintptr_t>(rows.lowest)) /
                                                          bytes);
    return ferry::extend::rows_for_reading<T, paged_items<Source>>{rows.lowest, 1, items};
  }
};

/// The rows for kernels that write: how many bytes the pages lie behind the place of an array at address 0.
struct page_addresser : ferry::extend::addressed_table {
  struct place {
    std::int64_t row;
  };
  page_numbers shift;

  template <class Source>
  KOKKOS_FUNCTION place find(const Source& source, std::int64_t item) const {
    return {source.segment(item).row};
  }
  KOKKOS_FUNCTION std::int64_t table_shift(const place& row_place) const {
    return shift.of_row(row_place.row);
  }
};

}  // namespace ferry_test

template <class T, class Space>
inline constexpr bool ferry::detail::is_table_object<ferry_test::paged_table<T, Space>> = true;

namespace ferry::detail {

template <class T, class Space>
class table_access<ferry_test::paged_table<T, Space>> : public rows_of_kernels<T, Space> {
  using paged = ferry_test::paged_table<T, Space>;

 public:
  table_access(const paged& table, const char*) : paged_(table), table_(extents_of(table)) {}

  static array_ref<T, Space> extents_of(const paged& table) {
    return dense_rows<T, Space>(nullptr, table.rows, table.width, "paged");
  }
  [[nodiscard]] const array_ref<T, Space>& table() const { return table_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(table_, 1); }

  template <class Exec>
  ferry_test::paged_rows<T> rows(launch_context<Exec>& call) const {
    ferry_test::paged_rows<T> rows;
    rows.rows_per_page = paged_.rows_per_page;
    rows.width = paged_.width;
    int number = 0;
    for (const auto& page : paged_.pages) {
      require_direct_reach(call.verb(), call.exec(), make_ref(page));
      call.reads_from(make_ref(page));
      rows.pages[number++] = page.data();
      if (rows.lowest == nullptr || page.data() < rows.lowest) rows.lowest = page.data();
    }
    return rows;
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

  template <class Path, class Exec, class Job>
  void touches(launch_context<Exec>& call, const Job& job) const {
    touch_arrays<Path>(call, job);
    for (const auto& page : paged_.pages) {
      require_direct_reach(call.verb(), call.exec(), make_ref(page));
      call.writes_to(make_ref(page));
    }
  }
  template <class Path, class Exec, class Job>
  auto located(launch_context<Exec>&, const Job& job, const row_plan& plan) const {
    return located_job{addressed(job), plan_order<Path, Space>(plan)};
  }
  template <class Exec, class Job, class Source>
  auto located(launch_context<Exec>& call, const std::string& label, const Job& job, const Source& source,
               std::int64_t n) const {
    validate_rows(call, label, source, n);
    return located_job{addressed(job), schedule::flat{}};
  }

 private:
  template <class Job>
  auto addressed(const Job& job) const {
    ferry_test::page_addresser rows;
    rows.shift.rows_per_page = paged_.rows_per_page;
    const std::int64_t page_bytes = row_bytes() * paged_.rows_per_page;
    int number = 0;
    for (const auto& page : paged_.pages) {
      rows.shift.number[number] =
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(page.data())) - number * page_bytes;
      ++number;
    }
    return addressed_job<Job, ferry_test::page_addresser>(job, rows);
  }

  const paged& paged_;
  array_ref<T, Space> table_;
};

}  // namespace ferry::detail
