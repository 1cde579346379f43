// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

namespace ferry_bench {
namespace {

/// The workload that SpeedTorch was made for: 131072 random rows of 128 floats, out of tables of half a gigabyte and of
/// ten, the sizes that peers/gather.py takes by itself.
template <class Space, class Path>
void time_size(session& run, const std::string& name, double gigabytes, Path path) {
  const bool quick = run.chosen().quick;
  const auto bytes = static_cast<std::size_t>(gigabytes * (quick ? 1e7 : 1e9));
  if (!quick && bytes > run.host_table_bytes())
    return run.results().skipped(name, "the table is larger than those of this run");
  const auto width = run.chosen().width;
  filled_table<Space> table(run, bytes);
  const auto view = table.rows_of(width * 4);
  const auto sets = index_sets::make<any_row>(run, run.chosen().step_n, view.rows());
  batch_tensor batch("batch", run.chosen().step_n, width);
  facts setting = table.setting();
  setting.emplace_back("width", width);
  setting.emplace_back("path", std::string(path.name));
  time_gather(run, name, setting, view, sets, batch, 1, over_the_link(), path);
}

void speedtorch(session& run) {
  for (const auto& [text, gigabytes] : {std::pair{"0.5GB", 0.5}, std::pair{"10GB", 10.0}}) {
    time_size<ferry::mapped_space>(run, std::string("speedtorch.mapped.") + text, gigabytes,
                                   ferry::path::direct{});
    time_size<ferry::pinned_space>(run, std::string("speedtorch.pinned.") + text, gigabytes,
                                   ferry::path::automatic{});
  }
}

const registration mine{"speedtorch", speedtorch};

}  // namespace
}  // namespace ferry_bench
