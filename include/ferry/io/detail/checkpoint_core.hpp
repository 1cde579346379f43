// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/background_save.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_load.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/io/save_options.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The part of a checkpoint that knows no types. Thread-safe: calls are served one after the other.
template <class Dependent>
class basic_checkpoint_core {
 public:
  explicit basic_checkpoint_core(std::string path) : path_(std::move(path)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (path_.empty()) throw invalid_argument("ferry::io::checkpoint: the path is empty");
    // A save in the background must not follow a later chdir.
    if (path_.front() != '/')
      if (const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), &std::free);
          here != nullptr)
        path_ = path_in(here.get(), path_);
  }
  basic_checkpoint_core(const basic_checkpoint_core&) = delete;
  basic_checkpoint_core& operator=(const basic_checkpoint_core&) = delete;
  /// Waits for a save in the background, which its ticket may keep alive.
  ~basic_checkpoint_core() {
    if (background_ != nullptr) background_->wait();
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  void require_name(const std::string& name) const {
    const std::lock_guard lock(guard_);
    if (name.empty() || name.size() > 1000)
      throw invalid_argument("ferry::io::checkpoint: a name has 1 to 1000 bytes, and '" + name.substr(0, 40) +
                             "' has " + std::to_string(name.size()));
    for (const auto& each : entries_)
      if (each->name() == name)
        throw invalid_argument("ferry::io::checkpoint: two objects are added as '" + name + "'");
  }
  void add(std::unique_ptr<checkpoint_entry> entry) {
    require_name(entry->name());
    const std::lock_guard lock(guard_);
    entries_.push_back(std::move(entry));
  }

  void save(const io::save_options& options) {
    const std::lock_guard lock(guard_);
    wait_for_background();
    const auto made = begin(options);
    made->write(0, made->chunks(), chunk_threads());
    made->finish();
  }

  /// The arrays' present contents are copied or written before the call returns.
  std::shared_ptr<background_save> save_in_background(const io::save_options& options) {
    const std::lock_guard lock(guard_);
    wait_for_background();
    auto made = begin(options);
    std::size_t first = made->chunks();
    std::size_t bytes = 0;
    while (first > 0 && made->bytes_of(first - 1) <= options.snapshot_bytes - bytes)
      bytes += made->bytes_of(--first);
    std::shared_ptr<tensor<std::byte, pageable_space>> memory;
    if (bytes != 0)
      memory = std::make_shared<tensor<std::byte, pageable_space>>("checkpoint::snapshot", bytes);
    const int threads = chunk_threads();
    made->write(0, first, threads);
    made->snapshot(first, made->chunks(), memory == nullptr ? nullptr : memory->data(), threads);
    // Few threads write: the others are left to training.
    background_ = std::make_shared<background_save>(std::move(made), first, std::max(1, threads / 8),
                                                    std::move(memory));
    return background_;
  }

  void load(const io::load_options& options) {
    const std::lock_guard lock(guard_);
    wait_for_background();
    load_checkpoint(path_, entries_, options);
  }

 private:
  /// Its error belongs to its ticket.
  void wait_for_background() {
    if (background_ != nullptr) background_->wait();
    background_ = nullptr;
  }
  std::unique_ptr<checkpoint_save> begin(const io::save_options& options) {
    checkpoint_content content;
    for (const auto& each : entries_) {
      manifest_entry& to = content.entries.emplace_back();
      to.name = each->name();
      each->describe(to, content.arrays);
    }
    for (const auto& each : content.arrays)
      if (each.accesses != nullptr) each.accesses->wait_for_writes();
    return std::make_unique<checkpoint_save>(path_, std::move(content), options.changes);
  }

  std::string path_;
  mutable std::mutex guard_;
  checkpoint_entries entries_;
  std::shared_ptr<background_save> background_;
};
using checkpoint_core = basic_checkpoint_core<void>;

}  // namespace ferry::detail
