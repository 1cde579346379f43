// SPDX-License-Identifier: Apache-2.0

#include <ferry/error.hpp>

#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/statistics.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

/// The accounts of one memory space: allocated bytes by label, the budget, and the pools with idle blocks. An
/// allocation is reserved before it is made, so that all threads together stay inside of the budget. It is
/// confirmed afterwards, so that a failure does not raise the peak. Never allocates or frees a block while it
/// holds its lock.
struct ledger {
  /// Labels without live allocations that are kept for their peaks, about.
  static constexpr std::size_t idle_labels = 256;

  explicit ledger(std::string_view name) : space(name) {}

  /// Reserves bytes. Above the budget, frees idle blocks first; throws budget_exceeded if that is not enough.
  std::shared_ptr<label_statistics> reserve(const std::string& label, std::size_t bytes);
  /// Adds an account if the label has none. The caller locks.
  std::shared_ptr<label_statistics> account_of(const std::string& label);
  /// Drops accounts without allocations. The caller locks.
  void forget_idle_labels() noexcept;

  [[nodiscard]] std::vector<std::shared_ptr<idle_memory>> live_pools() const;
  [[nodiscard]] std::size_t idle_bytes() const;
  std::size_t trim(std::size_t enough, in_flight effort);
  /// Frees idle blocks. Waits for blocks in flight only if there are no others. Returns whether any were
  /// freed.
  /// Another thread may be freeing the last of them: waits for it, and returns true if any were freed since
  /// freed_bytes was `freed_before`, when memory was short.
  bool make_room(std::size_t bytes, std::size_t freed_before);

  [[nodiscard]] space_statistics statistics() const;
  [[nodiscard]] std::vector<label_statistics> labels() const;
  /// The bytes held, for error messages.
  [[nodiscard]] std::string holdings() const;

  const std::string space;
  mutable std::mutex guard;
  space_statistics totals;  ///< without `reserved`
  std::size_t pending = 0;
  std::size_t freed_bytes = 0;  ///< of idle blocks, so far
  std::size_t trims = 0;        ///< under way
  std::condition_variable trim_end;
  std::map<std::string, std::shared_ptr<label_statistics>> accounts;  ///< by label; allocations share theirs
  std::size_t max_accounts = idle_labels;
  std::vector<std::weak_ptr<idle_memory>> pools;
};

/// The accounts of all memory spaces, by name. Every live allocation shares it, so one that outlives
/// Kokkos::finalize still closes its own account.
struct memory_registry {
  std::mutex guard;
  std::map<std::string, ledger, std::less<>> ledgers;

  static std::shared_ptr<memory_registry> get() { return until_finalize<memory_registry>(); }
  ledger& ledger_of(std::string_view space) {
    const std::lock_guard lock(guard);
    const auto known = ledgers.find(space);
    return known != ledgers.end() ? known->second
                                  : ledgers.try_emplace(std::string(space), space).first->second;
  }
  std::vector<ledger*> spaces() {
    const std::lock_guard lock(guard);
    std::vector<ledger*> list;
    for (auto& [name, books] : ledgers) list.push_back(&books);
    return list;
  }
};

std::shared_ptr<label_statistics> ledger::account_of(const std::string& label) {
  std::shared_ptr<label_statistics>& account = accounts[label];
  if (account == nullptr) account = std::make_shared<label_statistics>(label_statistics{label});
  return account;
}

std::shared_ptr<label_statistics> ledger::reserve(const std::string& label, std::size_t bytes) {
  for (;;) {
    std::size_t missing = 0, freed_before = 0, budget = 0;
    {
      const std::lock_guard lock(guard);
      const std::size_t taken_bytes = totals.current + pending;
      budget = totals.budget;
      if (budget == 0 || (taken_bytes <= budget && bytes <= budget - taken_bytes)) {
        auto account = account_of(label);
        pending += bytes;
        return account;
      }
      freed_before = freed_bytes;
      if (bytes <= budget) missing = bytes + taken_bytes - budget;
    }
    if (missing == 0 || !make_room(missing, freed_before))
      throw budget_exceeded(joined("ferry: ", bytes, " bytes in ", space, " for '", label,
                                   "' would pass the budget of ", budget, " bytes: ", holdings()));
  }
}

void ledger::forget_idle_labels() noexcept {
  std::erase_if(accounts, [](const auto& account) { return account.second.use_count() <= 1; });
  max_accounts = accounts.size() + idle_labels;
}

std::vector<std::shared_ptr<idle_memory>> ledger::live_pools() const {
  std::vector<std::shared_ptr<idle_memory>> alive;
  const std::lock_guard lock(guard);
  for (const auto& pool : pools)
    if (auto alive_pool = pool.lock()) alive.push_back(std::move(alive_pool));
  return alive;
}

std::size_t ledger::idle_bytes() const {
  std::size_t sum = 0;
  for (const auto& pool : live_pools()) sum += pool->idle_bytes();
  return sum;
}

std::size_t ledger::trim(std::size_t enough, in_flight effort) {
  const auto alive = live_pools();
  {
    const std::lock_guard lock(guard);
    ++trims;
  }
  struct trim_under_way {
    ledger& books;
    std::size_t freed = 0;
    ~trim_under_way() {
      const std::lock_guard lock(books.guard);
      --books.trims;
      books.freed_bytes += freed;
      books.trim_end.notify_all();
    }
  } under_way{*this};
  for (const auto& pool : alive)
    if (under_way.freed < enough) under_way.freed += pool->trim(enough - under_way.freed, effort);
  return under_way.freed;
}

bool ledger::make_room(std::size_t bytes, std::size_t freed_before) {
  if (trim(bytes, in_flight::skip) != 0 || trim(bytes, in_flight::wait) != 0) return true;
  std::unique_lock lock(guard);
  trim_end.wait(lock, [&] { return freed_bytes != freed_before || trims == 0; });
  return freed_bytes != freed_before;
}

space_statistics ledger::statistics() const {
  space_statistics now;
  {
    const std::lock_guard lock(guard);
    now = totals;
  }
  now.reserved = idle_bytes();
  return now;
}

std::vector<label_statistics> ledger::labels() const {
  std::vector<label_statistics> list;
  const std::lock_guard lock(guard);
  for (const auto& [label, account] : accounts)
    if (account != nullptr && account->peak != 0) list.push_back(*account);  // others were reserved alone
  return list;
}

std::string ledger::holdings() const {
  const space_statistics now = statistics();
  return joined(now.current, " bytes of ", space, " are held, ", now.reserved, " of them idle in pools");
}

namespace {

template <class Counts>
void add(Counts& counts, std::size_t bytes) noexcept {
  counts.current += bytes;
  counts.peak = std::max(counts.peak, counts.current);
  ++counts.count;
}

template <class Counts>
void remove(Counts& counts, std::size_t bytes) noexcept {
  counts.current -= bytes;
  --counts.count;
}

std::string bytes_text(std::size_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024.0 && unit + 1 < std::size(units); ++unit) value /= 1024.0;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

template <class Counts>
void append_line(std::string& table, std::string_view name, std::size_t width, const Counts& counts) {
  table.append(name).append(width - std::min(width, name.size()), ' ');
  char line[96];
  std::snprintf(line, sizeof line, "%12s%12s%8zu\n", bytes_text(counts.current).c_str(),
                bytes_text(counts.peak).c_str(), counts.count);
  table.append(line);
}

}  // namespace

/// The entry of one allocation.
struct memory_entry {
  std::shared_ptr<memory_registry> registry;
  ledger& books;
  std::shared_ptr<label_statistics> account;
  std::size_t bytes;
  bool confirmed = false;

  ~memory_entry() {
    const std::lock_guard lock(books.guard);
    if (confirmed) {
      remove(*account, bytes);
      remove(books.totals, bytes);
    } else {
      books.pending -= bytes;
    }
    account = nullptr;
    if (books.accounts.size() > books.max_accounts) books.forget_idle_labels();
  }
};

memory_charge::memory_charge(std::string_view space, const std::string& label, std::size_t bytes) {
  require_kokkos(label);
  auto registry = memory_registry::get();
  ledger& books = registry->ledger_of(space);
  entry_.reset(new memory_entry{std::move(registry), books, books.reserve(label, bytes), bytes});
}

void memory_charge::confirm() noexcept {
  const std::lock_guard lock(entry_->books.guard);
  space_statistics& totals = entry_->books.totals;
  entry_->books.pending -= entry_->bytes;
  add(*entry_->account, entry_->bytes);
  add(totals, entry_->bytes);
  ++totals.total_count;
  entry_->confirmed = true;
}

void memory_charge::move_to(const std::string& label) {
  const std::lock_guard lock(entry_->books.guard);
  auto target = entry_->books.account_of(label);
  if (target == entry_->account) return;
  add(*target, entry_->bytes);
  remove(*entry_->account, entry_->bytes);
  entry_->account = std::move(target);
}

bool memory_charge::make_room(std::size_t freed_before) {
  return entry_->books.make_room(~std::size_t{0}, freed_before);
}

std::size_t memory_charge::freed_bytes() const {
  const std::lock_guard lock(entry_->books.guard);
  return entry_->books.freed_bytes;
}

std::string memory_charge::holdings() const { return entry_->books.holdings(); }

bool is_within_budget(std::string_view account) {
  const ledger& books = memory_registry::get()->ledger_of(account);
  const std::lock_guard lock(books.guard);
  return books.totals.budget == 0 || books.totals.current + books.pending <= books.totals.budget;
}

void add_idle_memory(std::string_view account, std::weak_ptr<idle_memory> pool) {
  ledger& books = memory_registry::get()->ledger_of(account);
  const std::lock_guard lock(books.guard);
  std::erase_if(books.pools, [](const auto& gone) { return gone.expired(); });
  books.pools.push_back(std::move(pool));
}

space_statistics statistics_of(std::string_view account) {
  return memory_registry::get()->ledger_of(account).statistics();
}

std::vector<label_statistics> labels_of(std::string_view account) {
  return memory_registry::get()->ledger_of(account).labels();
}

void reset_peak_of(std::string_view account) {
  ledger& books = memory_registry::get()->ledger_of(account);
  const std::lock_guard lock(books.guard);
  books.forget_idle_labels();
  books.totals.peak = books.totals.current;
  for (auto& [label, counts] : books.accounts) counts->peak = counts->current;
}

void set_budget_of(std::string_view account, std::size_t bytes) {
  ledger& books = memory_registry::get()->ledger_of(account);
  const std::lock_guard lock(books.guard);
  books.totals.budget = bytes;
}

std::size_t trim_space(std::string_view space) {
  if (process_identity::get().has_lost_kokkos()) return 0;  // the blocks are the parent's
  const std::string on_devices = std::string(space).append(" of device ");
  std::size_t freed = 0;
  for (ledger* books : memory_registry::get()->spaces())
    if (space.empty() || books->space == space || books->space.starts_with(on_devices))
      freed += books->trim(~std::size_t{0}, in_flight::skip);
  return freed;
}

void refuse_device(const std::string& label, int device, int count) {
  throw invalid_argument(joined("ferry: memory for '", label, "' was requested on device ", device, ", but ",
                                count == 1 ? "the only device is " : "the devices are 0 to ", count - 1));
}

}  // namespace detail

std::size_t trim() { return detail::trim_space({}); }

memory_holdings memory_report() {
  const auto registry = detail::memory_registry::get();
  memory_holdings report;
  for (const detail::ledger* books : registry->spaces()) {
    memory_holdings::space holdings{books->space, books->statistics(), books->labels()};
    if (holdings.all.total_count == 0) continue;
    std::stable_sort(holdings.labels.begin(), holdings.labels.end(),
                     [](const auto& a, const auto& b) { return a.current > b.current; });
    report.spaces.push_back(std::move(holdings));
  }
  return report;
}

std::string memory_holdings::text() const {
  std::size_t width = 24;
  for (const space& holdings : spaces)
    for (const auto& entry : holdings.labels) width = std::max(width, entry.label.size() + 2);
  std::string table("memory");
  table.append(width - table.size(), ' ').append("         now        peak   count\n");
  for (const space& holdings : spaces) {
    detail::append_line(table, holdings.name, width, holdings.all);
    for (const auto& entry : holdings.labels)
      detail::append_line(table, std::string(2, ' ').append(entry.label), width, entry);
    if (holdings.all.reserved != 0)
      table.append("  (idle in pools: ").append(detail::bytes_text(holdings.all.reserved)).append(")\n");
    if (holdings.all.budget != 0)
      table.append("  (budget: ").append(detail::bytes_text(holdings.all.budget)).append(")\n");
  }
  return table;
}

}  // namespace ferry

namespace ferry::detail {

namespace {

/// A number after `name` in a text file, in bytes times `unit`; -1 if there is none ("max").
std::int64_t number_in(const std::string& path, const std::string& name, std::int64_t unit = 1) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    long long number = -1;
    if (line.starts_with(name) && std::sscanf(line.c_str() + name.size(), " %lld", &number) == 1)
      return number * unit;
  }
  return -1;
}

/// Lowers `available` to what the control group of this process and those above it can still give: a job of a
/// batch system, a service or a container has a limit of its own. `path` is the line of /proc/self/cgroup
/// after "<number>:<controllers>:"; groups that this process does not see are left out.
void lower_to_groups(std::int64_t& available, const std::string& root, std::string path, const char* limit,
                     const char* usage, const char* cached) {
  if (path == "/") path.clear();
  for (;; path.resize(path.rfind('/'))) {
    const std::string group = root + path + "/";
    const std::int64_t limit_bytes = number_in(group + limit, "");
    const std::int64_t used_bytes = number_in(group + usage, "");
    if (limit_bytes >= 0 && limit_bytes < (std::int64_t{1} << 60) && used_bytes >= 0) {
      const std::int64_t files = number_in(group + "memory.stat", cached);
      const std::int64_t left =
          std::max<std::int64_t>(limit_bytes - used_bytes + std::max<std::int64_t>(files, 0), 0);
      available = available < 0 ? left : std::min(available, left);
    }
    if (path.rfind('/') == std::string::npos) return;
  }
}

}  // namespace

std::int64_t available_bytes() {
  std::int64_t available = number_in("/proc/meminfo", "MemAvailable:", 1024);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - controllers - 1);
    if (names.empty())
      lower_to_groups(available, "/sys/fs/cgroup", line.substr(path), "memory.max", "memory.current",
                      "inactive_file ");
    else if (names == "memory")
      lower_to_groups(available, "/sys/fs/cgroup/memory", line.substr(path), "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file ");
  }
  return available;
}

}  // namespace ferry::detail
