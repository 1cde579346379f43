// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/io/file_table.hpp>
#include <ferry/io/load_npy.hpp>
#include <ferry/io/save_npy.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ferry_bench {
namespace {

constexpr std::size_t columns = 128;

/// A file of the benchmark's own, in FERRY_BENCH_FOLDER or /tmp, gone at the end.
class scratch_file {
 public:
  explicit scratch_file(const std::string& name) {
    const char* folder = std::getenv("FERRY_BENCH_FOLDER");
    path_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/ferry_bench_" +
            std::to_string(::getpid()) + "_" + name;
  }
  ~scratch_file() { ::unlink(path_.c_str()); }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The system's own rate: pieces of 8 MiB by plain threads, as many as ferry's. Milliseconds.
template <class Piece>
double by_threads(std::size_t bytes, const Piece& piece) {
  constexpr std::size_t most = std::size_t{8} << 20;
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t offset = next.fetch_add(most); offset < bytes; offset = next.fetch_add(most)) {
      const std::size_t some = std::min(most, bytes - offset);
      if (piece(offset, some) != static_cast<ssize_t>(some)) failed = true;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < Kokkos::DefaultHostExecutionSpace().concurrency(); ++i) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  if (failed) throw std::runtime_error("a read or write of the baseline failed");
  return seconds_since(begin) * 1e3;
}

template <class Work>
timing times_of(int repeats, const Work& work) {
  timing times;
  for (int i = 0; i < repeats; ++i) times.add(work());
  return times;
}

void add(session& run, const std::string& name, std::size_t bytes, const timing& times,
         const std::string& ceiling, std::int64_t wrong) {
  figure result;
  result.name = name;
  result.setting = {{"gib", static_cast<double>(bytes) / 0x1p30},
                    {"threads", std::int64_t{Kokkos::DefaultHostExecutionSpace().concurrency()}}};
  result.time.device = times;
  result.time.wall = times;
  result.bytes = static_cast<double>(bytes);
  result.counts = "payload";
  result.ceiling = ceiling;
  conclude(run, result, wrong);
}

/// A sample of the elements, and all of the last row.
std::int64_t wrong_elements(const float* data, std::size_t size) {
  const element_value expected{columns};
  std::int64_t wrong = 0;
  const auto look = [&](std::size_t i) {
    if (data[i] != expected(static_cast<std::int64_t>(i / columns), static_cast<std::int64_t>(i % columns)))
      ++wrong;
  };
  for (std::size_t i = 0; i < size; i += 997) look(i);
  for (std::size_t i = size - columns; i < size; ++i) look(i);
  return wrong;
}

std::size_t file_bytes(const session& run) {
  const std::size_t whole = run.host_table_bytes();
  const std::size_t bytes = run.chosen().table_gib || whole == std::size_t{16} << 30 ? whole : whole / 3 * 2;
  return bytes / (columns * 4) * (columns * 4);
}

/// Loads from the page cache, against the rate at which plain threads read the same file to memory that they have
/// touched before.
void load(session& run) {
  const std::size_t bytes = file_bytes(run);
  const int repeats = std::min(run.chosen().repeats, 3);
  const scratch_file at("load.npy");
  {
    ferry::tensor<float, ferry::pageable_space> table("table", bytes / 4 / columns, columns);
    ferry::init::custom(run.exec(), table, element_value{columns});
    ferry::io::save_npy(at.path(), table);
  }
  const auto file = ferry::detail::file::open_to_read("bench", at.path());
  const std::size_t header = file.size() - bytes;
  {
    ferry::tensor<char, ferry::pageable_space> memory("memory", bytes);
    const auto read = [&](std::size_t first, std::size_t count) {
      return ::pread(file.descriptor(), memory.data() + first, count, static_cast<off_t>(header + first));
    };
    by_threads(bytes, read);  // touches the memory and fills the page cache
    add(run, "files.page_cache.read", bytes, times_of(repeats, [&] { return by_threads(bytes, read); }), "",
        wrong_elements(reinterpret_cast<const float*>(memory.data()), bytes / 4));
  }
  const auto loaded = [&]<class Space>(Space, const std::string& space) {
    ferry::tensor<float, Space> table;
    const auto whole = times_of(repeats, [&] {
      table = {};
      const auto begin = std::chrono::steady_clock::now();
      table = ferry::io::load_npy<float, Space>(at.path(), "table");
      return seconds_since(begin) * 1e3;
    });
    const auto check = [&]() -> std::int64_t {
      if constexpr (Space::is_host_accessible) {
        return wrong_elements(table.data(), table.size());
      } else {
        const std::size_t some = std::min<std::size_t>(table.size(), 1000 * columns);
        std::vector<float> host_copy(some);
        copy_to_host(host_copy.data(), table.data(), some * 4);
        return wrong_elements(host_copy.data(), some);
      }
    };
    add(run, "files.load." + space, bytes, whole, "", check());
    // Without the allocation.
    const auto repeat = times_of(repeats, [&] {
      const auto begin = std::chrono::steady_clock::now();
      ferry::io::load_npy(at.path(), table);
      return seconds_since(begin) * 1e3;
    });
    add(run, "files.read." + space, bytes, repeat, "files.page_cache.read", check());
    const double cache = run.results().find("files.page_cache.read")->time.wall.median();
    run.results().ratio("files.load." + space, "files.page_cache.read", cache / whole.median());
    run.results().ratio("files.read." + space, "files.page_cache.read", cache / repeat.median());
  };
  loaded(ferry::mapped_space{}, "mapped");
  loaded(ferry::pinned_space{}, "pinned");
  loaded(ferry::pageable_space{}, "pageable");
  if (bytes <= run.device_table_bytes()) loaded(ferry::device_space{}, "device");
}

/// Saves, fsync included, against plain threads that write as many bytes and call fsync.
void save(session& run) {
  const std::size_t bytes = std::min(file_bytes(run), std::size_t{4} << 30);
  ferry::tensor<float, ferry::mapped_space> table("table", bytes / 4 / columns, columns);
  ferry::init::custom(run.exec(), table, element_value{columns});
  const int repeats = std::min(run.chosen().repeats, 3);
  const scratch_file at("save.npy");
  const scratch_file plain("plain");
  const auto disk = times_of(repeats, [&] {
    const int file = ::open(plain.path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) throw std::runtime_error("no file in " + plain.path());
    const auto begin = std::chrono::steady_clock::now();
    by_threads(bytes, [&](std::size_t first, std::size_t count) {
      return ::pwrite(file, reinterpret_cast<const char*>(table.data()) + first, count,
                      static_cast<off_t>(first));
    });
    ::fsync(file);
    const double ms = seconds_since(begin) * 1e3;
    ::close(file);
    return ms;
  });
  add(run, "files.disk.write", bytes, disk, "", 0);
  const auto ours = times_of(repeats, [&] {
    const auto begin = std::chrono::steady_clock::now();
    ferry::io::save_npy(at.path(), table);
    return seconds_since(begin) * 1e3;
  });
  const auto repeat = ferry::io::map_npy<float>(at.path());
  add(run, "files.save.mapped", bytes, ours, "files.disk.write",
      wrong_elements(repeat.data(), repeat.size()));
}

/// Gathers from a mapped file in the page cache, against the same gathers from pageable memory.
void gather(session& run) {
  const std::size_t bytes = std::min(file_bytes(run), std::size_t{4} << 30);
  const scratch_file at("gather.npy");
  ferry::tensor<float, ferry::pageable_space> table("table", bytes / 4 / columns, columns);
  ferry::init::custom(run.exec(), table, element_value{columns});
  ferry::io::save_npy(at.path(), table);
  const auto features = ferry::io::map_npy<float>(at.path());
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

const registration loading{"files.load", load};
const registration saving{"files.save", save};
const registration gathering{"files.gather", gather};

}  // namespace
}  // namespace ferry_bench
