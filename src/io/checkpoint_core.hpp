// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "background_save.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_load.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/io/save_options.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::detail {

/// The part of a checkpoint that knows no types. Thread-safe: calls are served one after the other.
class checkpoint_core {
 public:
  checkpoint_core(std::string path, const io::checkpoint_options& options);
  checkpoint_core(const checkpoint_core&) = delete;
  checkpoint_core& operator=(const checkpoint_core&) = delete;
  /// Waits for a save in the background, which its ticket may keep alive.
  ~checkpoint_core();

  [[nodiscard]] const std::string& path() const { return path_; }

  void require_name(const std::string& name) const;
  void add(std::unique_ptr<checkpoint_entry> entry);

  /// Takes back an add().
  void drop(const std::string& name) noexcept;

  void save(const io::save_options& options);

  /// The arrays' present contents are copied or written before the call returns.
  ticket save_async(const io::save_options& options, std::weak_ptr<ticket_state_keeper> keeper);

  void load(const io::load_options& options);
  [[nodiscard]] bool exists(const io::load_options& options);
  /// See generations_in. A save in the background has ended before.
  /// @{
  [[nodiscard]] std::vector<std::uint64_t> generations();
  [[nodiscard]] std::vector<std::string> names();
  /// @}

 private:
  /// The ranks that the calling thread is one of, and what was added.
  struct rank_group {
    const checkpoint_ranks* ranks = nullptr;
    std::vector<checkpoint_entry*> entries;
  };
  /// Their calls do not hold the lock: ranks of one process that share this object wait for each other.
  rank_group ranks();
  /// Its error belongs to its ticket. That of a detached ticket is returned, once.
  [[nodiscard]] std::exception_ptr end_background();
  void throw_lost_save();
  /// For calls that an error of the save before must not stop.
  void print_lost_save();
  std::unique_ptr<checkpoint_save> begin(const io::save_options& options);
  /// Waits for a save in the background, whose error stays where it is.
  void wait_for_background() const;

  [[nodiscard]] std::unique_lock<std::mutex> lock_unless_forked() const;

  std::string path_;
  int keep_;
  mutable std::mutex guard_;
  mutable process_mark user_;
  checkpoint_entries entries_;
  std::shared_ptr<background_save> background_;
};

}  // namespace ferry::detail
