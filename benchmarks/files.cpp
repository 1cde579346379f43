// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <ferry/io/file_table.hpp>
#include <ferry/io/save_npy.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ferry_bench {
namespace {

/// A file of the benchmark's own, in FERRY_BENCH_FOLDER or /tmp, gone at the end.
class scratch_file {
 public:
  scratch_file() {
    const char* folder = std::getenv("FERRY_BENCH_FOLDER");
    path_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/ferry_bench_" +
            std::to_string(::getpid()) + "_gather.npy";
  }
  ~scratch_file() { ::unlink(path_.c_str()); }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Gathers from a mapped file in the page cache, against the same gathers from pageable memory.
void gather(session& run) {
  constexpr std::size_t columns = 128;
  const std::size_t bytes = std::min(run.host_table_bytes(), std::size_t{4} << 30);
  const scratch_file scratch;
  ferry::tensor<float, ferry::pageable_space> table("table", bytes / 4 / columns, columns);
  ferry::init::custom(run.exec(), table, element_value{columns});
  ferry::io::save_npy(scratch.path(), table);
  const auto features = ferry::io::map_npy<float>(scratch.path());
  const std::int64_t n = run.chosen().step_n;
  const auto sets = index_sets::make<any_row>(run, n, table.rows());
  batch_tensor batch("batch", n, columns);
  const facts setting{{"gib", static_cast<double>(bytes) / 0x1p30}};
  std::int64_t touched = 0;  // the pages' own places in the page tables, as those of the memory
  for (std::size_t i = 0; i < features.size(); i += 1024) touched += features.data()[i] >= 0.0F ? 1 : 0;
  if (touched == 0) throw std::runtime_error("the file holds something else");
  time_gather(run, "files.gather.pageable", setting, table, sets, batch, 1, over_the_link());
  time_gather(run, "files.gather.mapped_file", setting, features, sets, batch, 1, over_the_link());
  run.results().ratio("files.gather.mapped_file", "files.gather.pageable",
                      run.results().find("files.gather.pageable")->time.wall.median() /
                          run.results().find("files.gather.mapped_file")->time.wall.median());
}

const registration mine{"files.gather", gather};

}  // namespace
}  // namespace ferry_bench
