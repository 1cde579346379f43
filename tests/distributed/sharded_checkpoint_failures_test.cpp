// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include "support/folder.hpp"

#include <ferry/io/detail/checkpoint_folder.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <thread>

/// Ranks that fail, differ or do not come while they save and load: the old checkpoint survives.
namespace ferry_test::sharded_checkpoint_failures_test {

namespace {

using ferry::detail::file;

constexpr int ranks = 3;
constexpr std::size_t rows = 700;

/// True if rank `which` alone failed by itself, with these words, which the others repeat.
bool failed(const std::vector<std::string>& texts, int rank, const char* words) {
  bool holds = true;
  for (int r = 0; r < ranks; ++r) {
    const std::string& text = texts[static_cast<std::size_t>(r)];
    UNSCOPED_INFO("rank " << r << ": " << text);
    holds = holds && has(text, words) && text.rfind(r == rank ? "own: " : "peer: ", 0) == 0;
  }
  return holds;
}
bool all_are(const std::vector<std::string>& texts, const char* kind) {
  bool holds = true;
  for (const std::string& text : texts) {
    UNSCOPED_INFO(text);
    holds = holds && text.rfind(kind, 0) == 0;
  }
  return holds;
}

/// A group, its table full of ones, and a checkpoint of it.
template <class Spread = ferry::sharding::cyclic>
struct saved_table {
  temporary_folder folder;
  std::string path = folder.path() + "/run";
  ferry::communicator comm;
  ferry::sharded_table<float, host, Spread> table;
  ferry::io::checkpoint run{path};

  /// `by_owner`: the first save is no collective call, which a deadline could end.
  explicit saved_table(std::chrono::milliseconds deadline = std::chrono::seconds(30), Spread spread = {},
                       bool by_owner = false)
      : comm(group_of(ranks, deadline)), table("w", comm, rows, 1024, spread) {
    fill(1);
    run.add("w", table);
    if (by_owner)
      run.save();
    else
      comm.run([&] { run.save(); });
  }
  void fill(double value) { ferry::init::constant(exec_space{}, table, value); }
  /// True if an ordinary table loads `value`, and no file is left over that the next save would not remove.
  bool holds(float value) {
    ferry::tensor<float, host> read("read", rows, 1024);
    ferry::init::zeros(exec_space{}, read);
    ferry::io::checkpoint ordinary(path);
    ordinary.add("w", read);
    ordinary.load();
    bool holds = true;
    for (std::size_t i = 0; i < read.size(); ++i) holds = holds && read.data()[i] == value;
    return holds;
  }
  bool table_is(float value) {
    bool holds = true;
    for (int r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < table.shard(r).size(); ++i)
        holds = holds && table.shard(r).data()[i] == value;
    return holds;
  }
};

/// A file may not grow beyond a number of bytes, which has the same effect as a full disk.
class full_disk {
 public:
  explicit full_disk(rlim_t bytes) : signal_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  struct rlimit before_ {};
  void (*signal_before_)(int);
};

}  // namespace

TEST_CASE("a rank that can't write leaves the old checkpoint", "[distributed]") {
  const watchdog guard("full disks");
  for (const int rank : {0, 2}) {
    saved_table<ferry::sharding::table_wise> saved(std::chrono::seconds(30), {.rank = rank});
    const int before = entries_of(saved.path);
    saved.fill(2);
    {
      const full_disk small(1 << 20);  // the rank that has the table writes 2.7 MiB
      CHECK(failed(errors_of_ranks(saved.comm, [&](int) { saved.run.save(); }), rank, "File too large"));
    }
    CHECK(entries_of(saved.path) == before);
    CHECK(saved.holds(1));
    saved.comm.run([&] { saved.run.save(); });  // the group serves on
    CHECK(saved.holds(2));
    CHECK(entries_of(saved.path) == before);
  }
}

TEST_CASE("ranks that do not save into one folder leave the old checkpoint", "[distributed]") {
  const watchdog guard("folders");
  saved_table saved;
  saved.fill(2);
  const int before = entries_of(saved.path);
  const auto save_into = [&](const std::string& of_last) {
    return errors_of_ranks(saved.comm, [&](int rank) {
      ferry::io::checkpoint run(rank == ranks - 1 ? of_last : saved.path);
      run.add("w", saved.table);
      run.save();
    });
  };
  // A table of one chunk is written by one rank: take one with a chunk for the last rank.
  saved_table<ferry::sharding::table_wise> last(std::chrono::seconds(30), {.rank = ranks - 1});
  REQUIRE(::mkdir((saved.folder.path() + "/elsewhere").c_str(), 0777) == 0);
  const auto save_last = [&](const std::string& folder) {
    return errors_of_ranks(last.comm, [&](int rank) {
      ferry::io::checkpoint run(rank == ranks - 1 ? folder : saved.path);
      run.add("w", last.table);
      run.save();
    });
  };
  CHECK(failed(save_last(saved.folder.path() + "/missing"), ranks - 1, "create the file: No such file"));
  CHECK(failed(save_last(saved.folder.path() + "/elsewhere"), 0, "all ranks need the same folder"));
  CHECK(entries_of(saved.path) == before);
  CHECK(saved.holds(1));
  {
    const ferry::detail::folder_lock second_lock(saved.path);
    CHECK(failed(save_into(saved.path), 0, "another checkpoint object or process is saving into it"));
  }
  CHECK(saved.holds(1));
  CHECK(all_are(save_into(saved.path), ""));
  CHECK(saved.holds(2));
}

TEST_CASE("a rank that does not come leaves the old checkpoint", "[distributed]") {
  const watchdog guard("late ranks");
  for (const bool throws : {false, true}) {
    saved_table saved(throws ? std::chrono::milliseconds(30000) : std::chrono::milliseconds(300), {}, true);
    saved.fill(2);
    std::vector<std::string> texts;
    std::atomic<int> waiting{ranks - 1};
    try {
      texts = errors_of_ranks(saved.comm, [&](int rank) {
        if (rank == 1 && throws) throw std::runtime_error("out of patience");
        if (rank == 1) {
          while (waiting > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return;
        }
        try {
          saved.run.save();
        } catch (...) {
          --waiting;
          throw;
        }
      });
      CHECK(!throws);
      CHECK(has(texts[0], "communication: "));
      CHECK(has(texts[2], "communication: "));
      CHECK(has(texts[0], "rank 1 is elsewhere"));
    } catch (const std::runtime_error& said) {
      CHECK(throws);
      CHECK(has(said.what(), "out of patience"));
    }
    CHECK(saved.holds(1));
    // Files that are left over go with the next save.
    const auto next = group_of(2);
    ferry::sharded_table<float, host> small("w", next, 5, 1024);
    ferry::init::zeros(exec_space{}, small);
    ferry::io::checkpoint run(saved.path);
    run.add("w", small);
    next.run([&] { run.save(); });
    CHECK(entries_of(saved.path) == 3);
  }
}

TEST_CASE("a damaged or unfit checkpoint changes no rank's rows", "[distributed]") {
  const watchdog guard("damage");
  saved_table saved;
  saved.fill(7);
  // Any one byte of a data file.
  for (std::uint64_t number = 1; number < 4; ++number) {
    const std::string path = ferry::detail::data_path(saved.path, number);
    file data("test", path);
    if (!data.open(path.c_str(), O_RDWR)) continue;
    char byte = 0;
    data.read_at(&byte, 1, data.size() - 1);
    byte = static_cast<char>(byte ^ 1);
    data.write_at(&byte, 1, data.size() - 1);
    const auto texts = errors_of_ranks(saved.comm, [&](int) { saved.run.load(); });
    int first_hand = 0;
    for (const auto& text : texts) {
      CHECK(has(text, "entry 'w' is damaged"));
      first_hand += has(text, "own: ") ? 1 : 0;
    }
    CHECK(first_hand == 1);
    byte = static_cast<char>(byte ^ 1);
    data.write_at(&byte, 1, data.size() - 1);
  }
  ferry::sharded_table<float, host> longer("w", saved.comm, rows + 1, 1024);
  ferry::sharded_table<double, host> wider("w", saved.comm, rows, 1024);
  const auto refuses = [&](auto& table, const char* name, const char* words) {
    const auto texts = errors_of_ranks(saved.comm, [&](int) {
      ferry::io::checkpoint run(saved.path);
      run.add(name, table);
      run.load();
    });
    for (const auto& text : texts) {
      CHECK(has(text, "own: "));
      CHECK(has(text, words));
    }
  };
  refuses(longer, "w", "is f32 [700 x 1024] in the file, and 'w' is f32 [701 x 1024]");
  refuses(wider, "w", "'w' is f64 [700 x 1024]; load_options::convert would convert it");
  refuses(saved.table, "v", "the file has no such entry; it has 'w'");
  auto state = ferry::optim::make_state(ferry::optim::adam{}, saved.table);
  const auto texts = errors_of_ranks(saved.comm, [&](int) {
    ferry::io::checkpoint run(saved.path);
    run.add("w", ferry::optim::adam{}, state);
    run.load();
  });
  CHECK(has(texts[1], "it is of kind 'array' in the file, and of kind 'state' here"));
  CHECK(saved.table_is(7));
  saved.comm.run([&] { saved.run.load(); });
  CHECK(saved.table_is(1));
}

TEST_CASE("what only the owner of a group may do is refused", "[distributed]") {
  const watchdog guard("refusals");
  saved_table saved;
  const auto changes = errors_of_ranks(saved.comm, [&](int) { saved.run.save({.changes = true}); });
  const auto later = errors_of_ranks(saved.comm, [&](int) { saved.run.save_async(exec_space{}).wait(); });
  for (int r = 0; r < ranks; ++r) {
    CHECK(
        has(changes[static_cast<std::size_t>(r)], "own: ferry::io::checkpoint::save: ranks save everything"));
    CHECK(has(later[static_cast<std::size_t>(r)],
              "own: ferry::io::checkpoint::save_async: objects of several"));
  }
  // Objects of two groups: by the owner of both only.
  const auto next = group_of(2);
  ferry::sharded_table<float, host> second_table("v", next, 20, 3);
  ferry::init::constant(exec_space{}, second_table, 3);
  saved.run.add("v", second_table);
  CHECK_THROWS_AS(saved.run.add("v", second_table), ferry::invalid_argument);
  saved.run.save();
  ferry::init::zeros(exec_space{}, second_table);
  saved.run.load();
  CHECK(second_table.shard(1)(0, 0) == 3);
  CHECK(has(errors_of_ranks(saved.comm, [&](int) { saved.run.save(); })[2],
            "own: ferry::io::checkpoint: objects of two"));
  // A table that a rank made for itself is not there outside of run.
  ferry::io::checkpoint run(saved.path);
  saved.comm.run([&](int rank) {
    ferry::sharded_table<float, host> rank_table("w", saved.comm, rows, 1024);
    if (rank != 0) return;
    run.add("w", rank_table);
  });
  CHECK_THROWS_AS(run.save(), ferry::invalid_argument);
  CHECK(saved.comm.size() == ranks);
}

}  // namespace ferry_test::sharded_checkpoint_failures_test
