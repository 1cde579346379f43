// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// The rates of every path over sizes, for plots: plot.py finds its points by the figures' settings, not by their names.
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

/// Setting by which plot.py finds a figure.
facts setting_of(const std::string& sweep, std::string_view space, std::string_view path, std::size_t bytes) {
  return {{"sweep", sweep},
          {"space", std::string(space)},
          {"path", std::string(path)},
          {"table_gib", static_cast<double>(bytes) / gib}};
}

/// "pinned"
template <class Space>
std::string short_name() {
  return std::string(Space::name.substr(0, Space::name.find('_')));
}

template <class Space>
class sweep_of {
 public:
  explicit sweep_of(session& run) : run_(run), largest_(run, run.host_table_bytes()) {}

  /// Rates against the size of the table. Smaller tables are the first rows of the largest.
  void tables() {
    const double most = static_cast<double>(run_.host_table_bytes()) / gib;
    std::vector<double> sizes;
    for (double size = run_.chosen().quick ? most / 2 : 0.25; size < 0.9 * most; size *= 2)
      sizes.push_back(size);
    sizes.push_back(most);
    for (const std::int64_t row_bytes : run_.chosen().rows_bytes)
      for (const double size : sizes) {
        char text[32];
        std::snprintf(text, sizeof text, "%gGiB", size);
        all_paths("table", bytes_text(row_bytes) + "." + text,
                  first_rows(largest_.rows_of(row_bytes), static_cast<std::size_t>(size * gib)));
      }
  }

  /// Rates against the size of a row, in the largest table.
  void rows() {
    for (std::int64_t row_bytes = 16; row_bytes <= 4096; row_bytes *= run_.chosen().quick ? 16 : 2)
      all_paths("rows", bytes_text(row_bytes), largest_.rows_of(row_bytes));
  }

  /// Parts of a call's time: the whole call, a call with the indices sorted beforehand, a call of a single row,
  /// and the sorting alone.
  void parts() {
    const auto row_bytes = run_.chosen().width * 4;
    const auto view = largest_.rows_of(row_bytes);
    for (const std::int64_t n : {run_.chosen().n, std::int64_t{1}}) {
      const auto sets = index_sets::make<any_row>(run_, n, view.rows());
      const plan_sets plans(run_, sets, view.rows());
      batch_tensor batch("batch", n, view.width());
      for_each_path<Space>([&](auto path) {
        if constexpr (!std::is_same_v<decltype(path), ferry::path::automatic>) {
          const auto time = [&](const std::string& part, const auto& rows) {
            time_gather_by(run_, name_of("parts", path) + "." + part, parts_setting(path.name, part, view),
                           view, rows, sets, batch, 1, over_the_link(), path);
          };
          if (n != 1) time("whole", sets);
          time(n == 1 ? "one_row" : "planned", plans);
        }
      });
      if (n == 1) continue;
      figure result;
      result.name = "sweep.parts." + short_name<Space>() + ".make_plan";
      result.setting = parts_setting("", "make_plan", view);
      result.setting.emplace_back("n", n);
      result.time = measure(run_, 1, [&](int call) {
        static_cast<void>(ferry::make_plan(run_.exec(), sets[call], view.rows()));
      });
      result.verified = true;  // by the gathers
      run_.results().add(result);
    }
  }

 private:
  template <class Path>
  static std::string name_of(const std::string& sweep, Path path) {
    return "sweep." + sweep + "." + short_name<Space>() + "." + std::string(path.name);
  }
  template <class View>
  static facts parts_setting(std::string_view path, const std::string& part, const View& view) {
    auto setting = setting_of("parts", Space::name, path, view.size() * sizeof(float));
    setting.emplace_back("part", part);
    return setting;
  }
  template <class View>
  void all_paths(const std::string& sweep, const std::string& point, const View& view) {
    const auto n = run_.chosen().n;
    const auto sets = index_sets::make<any_row>(run_, n, view.rows());
    batch_tensor batch("batch", n, view.width());
    for_each_path<Space>([&](auto path) {
      time_gather(run_, name_of(sweep, path) + "." + point,
                  setting_of(sweep, Space::name, path.name, view.size() * sizeof(float)), view, sets, batch,
                  1, over_the_link(), path);
    });
  }

  session& run_;
  filled_table<Space> largest_;
};

template <class Space>
void all_sweeps(session& run) {
  run.limit_calls(5, 1);
  sweep_of<Space> sweep(run);
  sweep.tables();
  sweep.rows();
  sweep.parts();
}

const registration mapped{"sweep.mapped", all_sweeps<ferry::mapped_space>};
const registration pinned{"sweep.pinned", all_sweeps<ferry::pinned_space>};

}  // namespace
}  // namespace ferry_bench
