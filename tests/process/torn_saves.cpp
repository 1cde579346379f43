// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include "check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Saves that are killed before each of their calls of the system, or in which each of these calls fails: the
/// folder has the old checkpoints or the new one, complete, and the next save leaves nothing of the torn one. The
/// order of the calls is checked, too, so that a loss of power has the same end.
namespace {

enum class fault { none, death, error };

std::atomic<fault> mode{fault::none};
std::atomic<int> calls_left{0};
std::atomic<int> error_number{0};

/// True if the call must fail; a dead process does not come back.
bool strikes() {
  if (mode == fault::none || calls_left.fetch_sub(1) != 1) return false;
  if (mode == fault::death) ::raise(SIGKILL);
  errno = error_number;
  return true;
}

/// Looks for calls that come before others have reached the disk.
struct order_of_calls {
  std::mutex guard;
  bool watches = false;
  std::set<std::string> unsynced;  ///< files that were written
  bool folder_is_synced = true;    ///< since the last change of a manifest's name
  std::vector<std::string> wrong;

  static std::string path_of(int descriptor) {
    char path[4096];
    const ssize_t length =
        ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
    return length < 0 ? std::string() : std::string(path, static_cast<std::size_t>(length));
  }
  static bool is_manifest(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.starts_with("manifest") || name.starts_with("named-");
  }
  void note_write(int descriptor) {
    const std::lock_guard lock(guard);
    if (watches) unsynced.insert(path_of(descriptor));
  }
  void note_sync(int descriptor) {
    const std::lock_guard lock(guard);
    if (!watches) return;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) folder_is_synced = true;
    unsynced.erase(path_of(descriptor));
  }
  void note_rename(const std::string& target) {
    const std::lock_guard lock(guard);
    if (!watches || !is_manifest(target)) return;
    if (!unsynced.empty()) wrong.push_back("a manifest gets its name before " + *unsynced.begin());
    folder_is_synced = false;
  }
  void note_unlink(const std::string& path) {
    const std::lock_guard lock(guard);
    if (!watches) return;
    unsynced.erase(path);
    // A manifest without its digests is whole: the next save of changes writes everything.
    if (path.ends_with(".part") || path.find("/digests-") != std::string::npos) return;
    if (is_manifest(path))
      folder_is_synced = false;
    else if (!folder_is_synced)
      wrong.push_back(path + " goes before the name of a manifest is on the disk");
  }
};
order_of_calls order;

}  // namespace

// Of this program, and so of ferry inside of it.
extern "C" {
int open(const char* path, int flags, ...) {
  mode_t rights = 0;
  if ((flags & O_CREAT) != 0) {
    va_list list;
    va_start(list, flags);
    rights = va_arg(list, mode_t);
    va_end(list);
    if (strikes()) return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, rights));
}
ssize_t pwrite(int descriptor, const void* source, std::size_t bytes, off_t offset) {
  if (strikes()) return -1;
  order.note_write(descriptor);
  return ::syscall(SYS_pwrite64, descriptor, source, bytes, offset);
}
int fsync(int descriptor) {
  if (strikes()) return -1;
  order.note_sync(descriptor);
  return 0;  // what a dead process has written stays; the disk's time is saved
}
int rename(const char* path, const char* target) noexcept {
  if (strikes()) return -1;
  order.note_rename(target);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, target, 0));
}
int unlink(const char* path) noexcept {
  if (strikes()) return -1;
  order.note_unlink(path);
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int mkdir(const char* path, mode_t rights) noexcept {
  if (strikes()) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, rights));
}
}

namespace {

constexpr int keep = 3;

struct contents {
  std::int64_t turn = 0;
  std::vector<float> table;
  std::string note;
  std::mt19937 engine;

  void go_to(std::int64_t next) {
    turn = next;
    table.assign(static_cast<std::size_t>(2000 + next % 3), 0.0F);
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<float>((next + static_cast<std::int64_t>(i % 40)) / 40);
    note = "turn " + std::to_string(next);
    engine.seed(static_cast<std::uint32_t>(next));
  }
  void add_to(ferry::io::checkpoint& run) {
    run.add("turn", turn);
    run.add("table", table);
    run.add("note", note);
    run.add("engine", engine);
  }
};

/// The turn of a checkpoint; -1 for one that is not there. One that is there must be whole.
std::int64_t turn_of(const std::string& path, const ferry::io::load_options& options) {
  contents now, expected;
  ferry::io::checkpoint run(path);
  now.add_to(run);
  try {
    run.load(options);
  } catch (const ferry::not_found&) {
    return -1;
  } catch (const ferry::error& lost) {
    std::puts(lost.what());
    FERRY_TEST_CHECK(false);
    return -2;
  }
  expected.go_to(now.turn);
  FERRY_TEST_CHECK(now.table == expected.table && now.note == expected.note && now.engine == expected.engine);
  return now.turn;
}

void save(const std::string& path, std::int64_t turn, const ferry::io::save_options& options) {
  contents now;
  ferry::io::checkpoint run(path, {.keep = keep});
  now.add_to(run);
  now.go_to(turn);
  run.save(options);
}

struct scenario {
  const char* label;
  int saves;  ///< that came before
  ferry::io::save_options options;
};

/// The checkpoints of a folder after a torn save of `turn`: what was there before stays, except for the oldest
/// generation once the new one is there.
void check(const scenario& torn, const std::string& path, std::int64_t turn, bool has_best) {
  const ferry::io::checkpoint run(path);
  const auto generations = run.generations();
  std::vector<std::int64_t> turns;
  for (const auto number : generations) turns.push_back(turn_of(path, {.generation = number}));
  FERRY_TEST_CHECK(std::is_sorted(turns.begin(), turns.end()));
  FERRY_TEST_CHECK(run.exists() == !turns.empty());
  if (!turns.empty()) FERRY_TEST_CHECK(turn_of(path, {}) == turns.back());
  const bool is_new = !turns.empty() && turns.back() == turn;
  const std::int64_t first = std::max<std::int64_t>(1, turn - keep);
  for (std::int64_t old = is_new ? first + (turn > keep ? 1 : 0) : first; old < turn; ++old)
    FERRY_TEST_CHECK(std::find(turns.begin(), turns.end(), old) != turns.end());
  const std::int64_t best = turn_of(path, {.name = "best"});
  const bool is_named = !torn.options.name.empty();
  FERRY_TEST_CHECK(best == (has_best ? 1 : -1) || (is_named && best == turn));
  if (is_named) FERRY_TEST_CHECK(!is_new);
}

/// Later saves remove all that a torn one has left.
void check_next(const std::string& path, std::int64_t turn, bool has_best) {
  for (int i = 0; i < keep; ++i) save(path, turn + 1 + i, {});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++files;
  const bool named = has_best || turn_of(path, {.name = "best"}) >= 0;
  const std::size_t expected = 2 * keep + 2 + (named ? 2 : 0);  // with the lock, and the newest one's digests
  if (files != expected)
    for (const auto& entry : std::filesystem::directory_iterator(path)) std::puts(entry.path().c_str());
  FERRY_TEST_CHECK(files == expected);
}

/// Tears a save before each call, in turn. Returns the number of calls.
int tear(const scenario& torn, const std::string& root, bool has_best, fault kind, int reason) {
  const std::string base = root + "/base", path = root + "/run";
  std::filesystem::remove_all(base);
  for (int i = 1; i <= torn.saves; ++i) save(base, i, {.changes = i % 2 == 0});
  if (has_best) save(base, 1, {.name = "best"});
  const std::int64_t turn = torn.saves + 1;
  for (int call = 1;; ++call) {
    std::filesystem::remove_all(path);
    if (std::filesystem::exists(base)) std::filesystem::copy(base, path);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      error_number = reason;
      calls_left = call;
      mode = kind;
      int end = 0;
      try {
        save(path, turn, torn.options);
      } catch (const ferry::io_error&) {
        end = 1;
      } catch (...) {
        std::_Exit(3);
      }
      mode = fault::none;
      std::_Exit(calls_left > 0 ? 4 : end);
    }
    int status = 0;
    FERRY_TEST_CHECK(child > 0 && ::waitpid(child, &status, 0) == child);
    const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const int end = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const int before = failures;
    if (kind == fault::death)
      FERRY_TEST_CHECK(was_killed || end == 4);
    else
      FERRY_TEST_CHECK(end == 0 || end == 1 || end == 4);
    check(torn, path, turn, has_best);
    check_next(path, turn, has_best);
    if (failures != before) std::printf("%s, call %d, fault %d\n", torn.label, call, static_cast<int>(kind));
    if (end == 4 || failures != before) return call - 1;
  }
}

}  // namespace

int main() {
  std::string root =
      (std::getenv("TMPDIR") != nullptr ? std::string(std::getenv("TMPDIR")) : std::string("/tmp")) +
      "/ferry_torn_XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) return 1;
  const scenario scenarios[] = {{"the first save", 0, {}},
                                {"a save", 2, {}},
                                {"a save that removes a generation", 5, {}},
                                {"a save of changes", 5, {.changes = true}},
                                {"a named save", 2, {.name = "best"}},
                                {"a named save of changes", 4, {.changes = true, .name = "best"}}};
  int calls = 0;
  for (const auto& torn : scenarios)
    for (const bool has_best : {false, true}) {
      calls += tear(torn, root, has_best, fault::death, 0);
      calls += tear(torn, root, has_best, fault::error, EIO);
      calls += tear(torn, root, has_best, fault::error, ENOSPC);
    }
  std::printf("%d torn saves\n", calls);
  FERRY_TEST_CHECK(calls > 500);

  order.watches = true;
  const std::string path = root + "/order";
  for (int i = 1; i < 40; ++i) {
    save(path, i, {.changes = i % 4 != 1});
    if (i % 5 == 0) save(path, i, {.changes = i % 2 == 0, .name = i % 3 == 0 ? "best" : "other"});
  }
  order.watches = false;
  for (const auto& words : order.wrong) std::puts(words.c_str());
  FERRY_TEST_CHECK(order.wrong.empty());
  std::filesystem::remove_all(root);
  return failures == 0 ? 0 : 1;
}
