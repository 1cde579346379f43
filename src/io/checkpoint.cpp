// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/checkpoint.hpp>

#include "../../backends/enabled.hpp"
#include "../runtime/worker_pool.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Writes the rest of a save in a thread of its own. Others may wait for its end. A child of the process
/// never locks or destroys it: the thread may have held the lock, and the new file is the parent's.
class background_save final : public event {
 public:
  /// Chunks from `first` on have been copied; `snapshot` is the memory of the copies.
  background_save(std::unique_ptr<checkpoint_save>&& save, std::size_t first, int threads,
                  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot)
      : save_(std::move(save)),
        snapshot_(std::move(snapshot)),
        processors_(processor_set::of_process()),
        first_(first),
        threads_(threads) {
    const signals_elsewhere quiet;
    thread_ = std::jthread([this] { run(); });
  }

  /// Throws invalid_argument in a child that was forked before the end.
  void wait() override {
    if (has_ended()) return;
    if (!process_.is_here())
      refuse_child("io::checkpoint", "is saving in the background",
                   "wait for the save before the fork, or save by a checkpoint of the child's own");
    std::unique_lock lock(guard_);
    end_.wait(lock, [this] { return has_ended(); });
  }
  [[nodiscard]] bool ready() override { return has_ended() || !process_.is_here(); }
  /// False in a child of the process that saves.
  [[nodiscard]] bool in_own_process() const noexcept { return process_.is_here(); }

  /// The checkpoint object and the ticket hear of an error; the later of the two that leaves reports it, unless
  /// the ticket has thrown it.
  /// @{
  /// For the ticket, after wait(): the error that it throws.
  [[nodiscard]] std::exception_ptr take_error() noexcept {
    is_reported_.store(true, std::memory_order_relaxed);
    static_cast<void>(leave());
    return error_;
  }
  /// The error that the caller has to report; null for none. Each of the two calls it once, the checkpoint
  /// object after wait().
  [[nodiscard]] std::exception_ptr leave() noexcept {
    const bool is_last = listeners_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    return is_last && !is_reported_.load(std::memory_order_relaxed) ? error_ : nullptr;
  }
  /// @}

 private:
  [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  void run() noexcept {
    processors_.take();
    std::exception_ptr error;
    try {
      save_->write(first_, save_->chunks(), threads_);
      save_->finish();
    } catch (...) {
      error = std::current_exception();
    }
    save_ = nullptr;  // releases the folder before anyone is notified
    snapshot_ = nullptr;
    error_ = error;
    const std::lock_guard lock(guard_);
    ended_.store(true, std::memory_order_release);
    end_.notify_all();
  }

  std::unique_ptr<checkpoint_save> save_;
  std::shared_ptr<tensor<std::byte, pageable_space>> snapshot_;
  std::mutex guard_;
  std::condition_variable end_;
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::atomic<int> listeners_{2};
  std::atomic<bool> is_reported_{false};
  processor_set processors_;
  std::size_t first_;
  int threads_;
  process_mark process_;
  std::jthread thread_;  // ends first: it uses the others
};

namespace {

/// A ticket of a save: wait() throws its error.
ticket ticket_of(const std::shared_ptr<background_save>& save, std::weak_ptr<ticket_state_keeper> keeper) {
  ticket_state_handle state(new ticket_state);
  state->completion = save;
  state->resources.push_back(save);
  state->find_error = [](ticket_state& record) {
    return static_cast<background_save*>(record.resources.front().get())->take_error();
  };
  state->give_up = [](ticket_state& record) noexcept {
    auto& job = *static_cast<background_save*>(record.resources.front().get());
    if (const auto lost = job.leave()) print_unheard(lost);
  };
  state->keeper = std::move(keeper);
  return ticket(std::move(state));
}

void require_choice(const char* verb, const io::load_options& options) {
  require_checkpoint_name(verb, options.name);
  if (!options.name.empty() && options.generation != 0)
    throw invalid_argument(joined("ferry::io::checkpoint::", verb, ": generation ", options.generation,
                                  " and the name '", options.name,
                                  "' are given; a named checkpoint is no generation"));
}

}  // namespace

/// The part of a checkpoint that knows no types. Calls are served one after the other.
class checkpoint_core {
 public:
  checkpoint_core(std::string path, const io::checkpoint_options& options)
      : path_(std::move(path)), keep_(options.keep) {
    if (keep_ < 1) throw invalid_argument(joined("ferry::io::checkpoint: keep is ", keep_, ", must be >= 1"));
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (path_.empty()) throw invalid_argument("ferry::io::checkpoint: the path is empty");
    require_whole_path("ferry::io::checkpoint", path_);
    // A save in the background must not follow a later chdir.
    if (path_.front() != '/')
      if (const std::unique_ptr<char, void (*)(void*)> folder(::getcwd(nullptr, 0), &std::free);
          folder != nullptr)
        path_ = path_in(folder.get(), path_);
  }
  checkpoint_core(const checkpoint_core&) = delete;
  checkpoint_core& operator=(const checkpoint_core&) = delete;
  /// Waits for a save in the background, which its ticket may keep alive.
  ~checkpoint_core() {
    if (background_ == nullptr || !background_->in_own_process()) return;
    background_->wait();
    if (const auto lost = background_->leave()) print_unheard(lost);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  void require_name(const std::string& name) const {
    const auto lock = lock_unless_forked();
    if (name.empty() || name.size() > 1000)
      throw invalid_argument(joined("ferry::io::checkpoint: a name has 1 to 1000 bytes, and '",
                                    name.substr(0, 40), "' has ", name.size()));
    for (const auto& entry : entries_)
      if (entry->name() == name)
        throw invalid_argument("ferry::io::checkpoint: two objects are added as '" + name + "'");
  }
  void add(std::unique_ptr<checkpoint_entry> entry) {
    require_name(entry->name());
    const auto lock = lock_unless_forked();
    entries_.push_back(std::move(entry));
  }
  /// Takes back an add().
  void drop(const std::string& name) noexcept {
    const std::lock_guard lock(guard_);
    std::erase_if(entries_, [&](const auto& entry) { return entry->name() == name; });
  }

  void save(const io::save_options& options) {
    if (const auto group = ranks(); group.ranks != nullptr)
      return group.ranks->save({path_, group.entries, this, keep_}, options);
    const auto lock = lock_unless_forked();
    throw_lost_save();
    const auto save = begin(options);
    save->write(0, save->chunks(), chunk_threads());
    save->finish();
  }

  /// The arrays' present contents are copied or written before the call returns.
  ticket save_async(const io::save_options& options, std::weak_ptr<ticket_state_keeper> keeper) {
    if (ranks().ranks != nullptr)
      throw invalid_argument(
          "ferry::io::checkpoint::save_async: objects of several ranks are saved by all ranks together; call "
          "save(), or save_async by a thread that acts for the group as a whole");
    const auto lock = lock_unless_forked();
    throw_lost_save();
    auto save = begin(options);
    std::size_t first = save->chunks();
    std::size_t bytes = 0;
    while (first > 0 && save->bytes_of(first - 1) <= options.snapshot_bytes - bytes)
      bytes += save->bytes_of(--first);
    std::shared_ptr<tensor<std::byte, pageable_space>> memory;
    if (bytes != 0)
      memory = std::make_shared<tensor<std::byte, pageable_space>>("checkpoint::snapshot", bytes);
    const int threads = chunk_threads();
    save->write(0, first, threads);
    save->snapshot(first, save->chunks(), memory == nullptr ? nullptr : memory->data(), threads);
    // Few threads write: the others are left to training.
    background_ = std::shared_ptr<background_save>(
        new background_save(std::move(save), first, std::max(1, threads / 8), std::move(memory)),
        delete_in_own_process());
    return ticket_of(background_, std::move(keeper));
  }

  void load(const io::load_options& options) {
    require_choice("load", options);
    if (const auto group = ranks(); group.ranks != nullptr)
      return group.ranks->load({path_, group.entries, this, keep_}, options);
    const auto lock = lock_unless_forked();
    print_lost_save();
    load_checkpoint(path_, entries_, options);
  }

  /// Calls look() after the end of a save in the background, whose error stays where it is.
  template <class Look>
  [[nodiscard]] auto after_background(const Look& look) const {
    const auto lock = lock_unless_forked();
    if (background_ != nullptr) background_->wait();
    return look();
  }

  [[nodiscard]] bool exists(const io::load_options& options) {
    require_choice("exists", options);
    if (const auto group = ranks(); group.ranks != nullptr)
      return group.ranks->exists({path_, group.entries, this, keep_}, options);
    return after_background([&] {
      return find_manifest(path_, {options.generation, options.name}).has_value();
    });
  }

 private:
  /// The ranks that the calling thread is one of, and what was added.
  struct rank_group {
    const checkpoint_ranks* ranks = nullptr;
    std::vector<checkpoint_entry*> entries;
  };
  /// Their calls do not hold the lock: ranks of one process that share this object wait for each other.
  rank_group ranks() {
    const auto lock = lock_unless_forked();
    rank_group group;
    const checkpoint_ranks* previous = nullptr;
    for (const auto& entry : entries_) {
      group.entries.push_back(entry.get());
      const checkpoint_ranks* const ranks = entry->ranks();
      if (ranks == nullptr) continue;
      if (ranks->acts_for_one()) group.ranks = ranks;
      if (previous != nullptr && previous->group() != ranks->group() &&
          (ranks->acts_for_one() || previous->acts_for_one()))
        throw invalid_argument(
            "ferry::io::checkpoint: objects of two groups of ranks were added; a thread that acts for one rank "
            "saves and loads objects of one group");
      previous = ranks;
    }
    if (group.ranks != nullptr) print_lost_save();
    return group;
  }

  /// Its error belongs to its ticket. That of a detached ticket is returned, once.
  [[nodiscard]] std::exception_ptr end_background() {
    if (background_ == nullptr) return nullptr;
    background_->wait();
    auto lost = background_->leave();
    background_ = nullptr;
    return lost;
  }
  void throw_lost_save() {
    if (const auto lost = end_background()) std::rethrow_exception(lost);
  }
  /// For calls that an error of the save before must not stop.
  void print_lost_save() {
    if (const auto lost = end_background()) print_unheard(lost);
  }

  std::unique_ptr<checkpoint_save> begin(const io::save_options& options) {
    require_checkpoint_name("save", options.name);
    checkpoint_content content;
    for (const auto& entry : entries_) {
      manifest_entry& description = content.entries.emplace_back();
      description.name = entry->name();
      entry->describe(description, content.arrays);
    }
    for (const auto& array : content.arrays)
      if (array.accesses != nullptr) array.accesses->wait_for_writes();
    return std::make_unique<checkpoint_save>(path_, checkpoint_target{keep_, options.name},
                                             std::move(content), options.changes);
  }

  [[nodiscard]] std::unique_lock<std::mutex> lock_unless_forked() const {
    return lock_unless_lost(guard_, user_, "io::checkpoint");
  }

  std::string path_;
  int keep_;
  mutable std::mutex guard_;
  mutable process_mark user_;
  checkpoint_entries entries_;
  std::shared_ptr<background_save> background_;
};

}  // namespace ferry::detail

namespace ferry::io {

checkpoint::checkpoint(std::string path, const checkpoint_options& options)
    : core_(std::make_unique<detail::checkpoint_core>(std::move(path), options)) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

const std::string& checkpoint::path() const { return core_->path(); }
void checkpoint::save(const save_options& options) { core_->save(options); }
void checkpoint::load(const load_options& options) { core_->load(options); }
bool checkpoint::exists(const load_options& options) const { return core_->exists(options); }
std::vector<std::uint64_t> checkpoint::generations() const {
  return core_->after_background([this] { return detail::generations_in(path()); });
}
std::vector<std::string> checkpoint::names() const {
  return core_->after_background([this] { return detail::checkpoint_names_in(path()); });
}

void checkpoint::add_entry(std::unique_ptr<detail::checkpoint_entry> entry) { core_->add(std::move(entry)); }
void checkpoint::require_name(const std::string& name) const { core_->require_name(name); }
void checkpoint::save_as(const std::string& name) {
  if (name.empty())
    throw invalid_argument(
        "ferry::io::checkpoint::save: the name of the checkpoint is empty; save() without a name makes a generation");
  core_->save({.name = name});
}
void checkpoint::drop(const std::string& name) noexcept { core_->drop(name); }

ticket checkpoint::save_in_background(const save_options& options,
                                      std::weak_ptr<detail::ticket_state_keeper> keeper) {
  return core_->save_async(options, std::move(keeper));
}

}  // namespace ferry::io
