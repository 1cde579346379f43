// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

/// The rates of every path against the size of the table, for README's picture: plot.py finds its points by the figures'
/// settings, not by their names.
namespace ferry_bench {
namespace {

constexpr double gib = 0x1p30;

/// From mapped memory there is nothing to gain but by reading the rows where they are.
template <class Space, class Visit>
void for_each_path(const Visit& visit) {
  visit(ferry::path::direct{});
  if constexpr (std::is_same_v<Space, ferry::pinned_space>) {
    visit(ferry::path::ordered{});
    visit(ferry::path::staged{});
    visit(ferry::path::cooperative{});
    visit(ferry::path::automatic{});
  }
}

/// Smaller tables are the first rows of the largest.
template <class Space>
void sweep(session& run) {
  run.limit_calls(5, 1);
  filled_table<Space> largest(run, run.host_table_bytes());
  const double most = static_cast<double>(run.host_table_bytes()) / gib;
  std::vector<double> sizes;
  for (double size = run.chosen().quick ? most / 2 : 0.25; size < 0.9 * most; size *= 2)
    sizes.push_back(size);
  sizes.push_back(most);
  const std::string space(Space::name.substr(0, Space::name.find('_')));  // "pinned"
  for (const std::int64_t row_bytes : run.chosen().rows_bytes)
    for (const double size : sizes) {
      char text[32];
      std::snprintf(text, sizeof text, "%gGiB", size);
      const auto view = first_rows(largest.rows_of(row_bytes), static_cast<std::size_t>(size * gib));
      const auto sets = index_sets::make<any_row>(run, run.chosen().n, view.rows());
      batch_tensor batch("batch", run.chosen().n, view.width());
      for_each_path<Space>([&](auto path) {
        const facts setting{{"sweep", std::string("table")},
                            {"space", std::string(Space::name)},
                            {"path", std::string(path.name)},
                            {"table_gib", static_cast<double>(view.size() * sizeof(float)) / gib}};
        time_gather(
            run,
            "sweep.table." + space + "." + std::string(path.name) + "." + bytes_text(row_bytes) + "." + text,
            setting, view, sets, batch, 1, over_the_link(), path);
      });
    }
}

const registration mapped{"sweep.mapped", sweep<ferry::mapped_space>};
const registration pinned{"sweep.pinned", sweep<ferry::pinned_space>};

}  // namespace
}  // namespace ferry_bench
