// SPDX-License-Identifier: Apache-2.0
#include "support/tables.hpp"

#include <ferry/io.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {
namespace {

using clock = std::chrono::steady_clock;
using saved_table = ferry::tensor<float, ferry::mapped_space>;

/// A folder on the disk to be measured, $FERRY_BENCH_FOLDER or that of temporary files.
class scratch_folder {
 public:
  scratch_folder() {
    for (const char* name : {"FERRY_BENCH_FOLDER", "TMPDIR"})
      if (path_.empty() && std::getenv(name) != nullptr) path_ = std::getenv(name);
    if (path_.empty()) path_ = "/tmp";
    path_ += "/ferry_bench_XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    for (const auto& name : ferry::detail::names_in(path_ + "/run"))
      ::unlink((path_ + "/run/" + name).c_str());
    ::rmdir((path_ + "/run").c_str());
    ::unlink((path_ + "/plain").c_str());
    ::rmdir(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t room() const {
    struct statvfs space {};
    return ::statvfs(path_.c_str(), &space) == 0 ? space.f_bavail * space.f_frsize : 0;
  }

 private:
  std::string path_;
};

/// pwrite by `threads` threads, then fsync: what the disk takes at most.
double seconds_to_write(const std::string& path, const char* data, std::size_t bytes, int threads) {
  ::unlink(path.c_str());
  const auto begin = std::chrono::steady_clock::now();
  ferry::detail::file target("bench", path);
  if (!target.open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666))
    throw std::runtime_error("no file " + path);
  constexpr std::size_t piece = std::size_t{1} << 22;
  const auto pieces = static_cast<std::int64_t>((bytes + piece - 1) / piece);
  ferry::detail::parallel(
      pieces, 1, ferry::detail::threads_for_chunks(threads), [&](ferry::detail::front_queue& turns, int) {
        for (std::size_t i = 0; turns.take(i);)
          target.write_at(data + i * piece, std::min(piece, bytes - i * piece), i * piece);
      });
  target.sync();
  return seconds_since(begin);
}

void add(session& run, const std::string& name, const facts& setting, double bytes, const timing& times) {
  figure result;
  result.name = name;
  result.setting = setting;
  result.time.device = times;
  result.time.wall = times;
  result.bytes = bytes;
  result.counts = "payload";
  result.verified = true;
  run.results().add(result);
}

/// Rows of 128 floats: as many as the run's options and the disk allow.
std::size_t rows_for(const session& run, const scratch_folder& folder) {
  return std::min(run.host_table_bytes(), folder.room() / 3) / (512 * 4) * 4;
}

/// Checkpoints of a table in mapped memory next to plain writes of as many bytes to the same disk.
void checkpoint(session& run) {
  const scratch_folder folder;
  const std::size_t rows = rows_for(run, folder), bytes = rows * 512;
  saved_table table("table", rows, 128);
  ferry::init::uniform(run.exec(), table, -1.0f, 1.0f, run.fresh_seed());
  const facts setting{{"gib", static_cast<double>(bytes) / 0x1p30}, {"folder", folder.path()}};
  const auto total = static_cast<double>(bytes);
  const int repeats = std::min(run.chosen().repeats, 3);

  ferry::io::checkpoint saving(folder.path() + "/run");
  saving.add("table", table);
  timing disk, save, load, changes;
  for (int i = 0; i < repeats; ++i) {
    const auto* data = reinterpret_cast<const char*>(table.data());
    const double plain =
        std::min(seconds_to_write(folder.path() + "/plain", data, bytes, 1),
                 seconds_to_write(folder.path() + "/plain", data, bytes, ferry::detail::chunk_threads()));
    disk.add(1e3 * plain);
    ::unlink((folder.path() + "/plain").c_str());
    auto begin = clock::now();
    saving.save();
    save.add(1e3 * seconds_since(begin));
    const float before = table(rows / 2, 5);
    table(rows / 2, 5) = 7.0f;
    begin = clock::now();
    saving.load();
    load.add(1e3 * seconds_since(begin));
    if (table(rows / 2, 5) != before)
      return run.results().failed("checkpoint.load", "another number came back");
    table(rows / 2, 5) = 7.0f;
    begin = clock::now();
    saving.save({.changes = true});
    changes.add(1e3 * seconds_since(begin));
  }
  add(run, "checkpoint.disk", setting, total, disk);
  add(run, "checkpoint.save", setting, total, save);
  add(run, "checkpoint.load", setting, total, load);
  add(run, "checkpoint.save_changes", setting, total, changes);
  run.results().ratio("checkpoint.save", "checkpoint.disk", disk.median() / save.median());
}

/// A training loop with and without a save in the background.
void training(session& run) {
  const scratch_folder folder;
  const std::size_t rows = rows_for(run, folder), bytes = rows * 512;
  saved_table table("table", rows, 128);
  ferry::init::uniform(run.exec(), table, -1.0f, 1.0f, run.fresh_seed());
  const facts setting{{"gib", static_cast<double>(bytes) / 0x1p30}, {"folder", folder.path()}};
  const auto total = static_cast<double>(bytes);
  const int repeats = std::min(run.chosen().repeats, 3);
  const ferry::optim::adagrad rule{.lr = 0.01};
  auto state = ferry::optim::make_state(rule, table);
  const auto n = run.chosen().step_n;
  const auto sets = index_sets::make<any_row>(run, n, rows);
  batch_tensor grads("grads", n, 128);
  ferry::init::uniform(run.exec(), grads, -1.0f, 1.0f, run.fresh_seed());
  ferry::io::checkpoint saving(folder.path() + "/run");
  saving.add("table", table);
  saving.add("adagrad", rule, state);
  const auto begin_of_save = clock::now();
  saving.save();
  const double save = 1e3 * seconds_since(begin_of_save);
  int call = 0;
  const auto loop = [&](int steps, bool saves) {
    ferry::ticket writing;
    const auto begin = clock::now();
    for (int i = 0; i < steps; ++i) {
      if (i == steps / 10 && saves) writing = saving.save_async(run.exec());
      ferry::step(run.exec(), rule, table, state, sets[call++], grads).wait();
    }
    const double seconds = seconds_since(begin);
    writing.wait();
    return 1e3 * seconds;
  };
  // The loop takes twice as long as a save, which is a frequent one.
  const double base = loop(20, false) / 20;
  const int steps = std::clamp(static_cast<int>(2 * save / base), 40, 200000);
  timing alone, with_save, call_alone;
  for (int i = 0; i < repeats; ++i) {
    alone.add(loop(steps, false));
    with_save.add(loop(steps, true));
    const auto begin = clock::now();
    auto writing = saving.save_async(run.exec());
    call_alone.add(1e3 * seconds_since(begin));
    writing.wait();
  }
  const facts loop_setting = setting + facts{{"steps", std::int64_t{steps}}, {"n", n}};
  add(run, "checkpoint.training", loop_setting, 0, alone);
  add(run, "checkpoint.training_and_save_async", loop_setting, 0, with_save);
  add(run, "checkpoint.save_async.call", setting, 2 * total, call_alone);
  run.results().ratio("checkpoint.training_and_save_async", "checkpoint.training",
                      alone.median() / with_save.median());
}

const registration saves{"checkpoint.table", checkpoint};
const registration trains{"checkpoint.training", training};

}  // namespace
}  // namespace ferry_bench
