// SPDX-License-Identifier: Apache-2.0
#include "checkpoint_core.hpp"

#include "../../backends/enabled.hpp"
#include "background_save.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_choice.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_load.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/io/save_options.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {
namespace {

void require_choice(const char* verb, const io::load_options& options) {
  require_checkpoint_name(verb, options.name);
  if (!options.name.empty() && options.generation != 0)
    throw invalid_argument("ferry::io::checkpoint::" + std::string(verb) + ": generation " +
                           std::to_string(options.generation) + " and the name '" + options.name +
                           "' are given; a named checkpoint is no generation");
}

}  // namespace

checkpoint_core::checkpoint_core(std::string path, const io::checkpoint_options& options)
    : path_(std::move(path)), keep_(options.keep) {
  if (keep_ < 1)
    throw invalid_argument("ferry::io::checkpoint: keep is " + std::to_string(keep_) + ", must be >= 1");
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  if (path_.empty()) throw invalid_argument("ferry::io::checkpoint: the path is empty");
  require_whole_path("ferry::io::checkpoint", path_);
  // A save in the background must not follow a later chdir.
  if (path_.front() != '/')
    if (const std::unique_ptr<char, void (*)(void*)> folder(::getcwd(nullptr, 0), &std::free);
        folder != nullptr)
      path_ = path_in(folder.get(), path_);
}

checkpoint_core::~checkpoint_core() {
  if (background_ == nullptr || !background_->in_own_process()) return;
  background_->wait();
  if (const auto lost = background_->leave()) print_unheard(lost);
}

void checkpoint_core::require_name(const std::string& name) const {
  const auto lock = lock_unless_forked();
  if (name.empty() || name.size() > 1000)
    throw invalid_argument("ferry::io::checkpoint: a name has 1 to 1000 bytes, and '" + name.substr(0, 40) +
                           "' has " + std::to_string(name.size()));
  for (const auto& entry : entries_)
    if (entry->name() == name)
      throw invalid_argument("ferry::io::checkpoint: two objects are added as '" + name + "'");
}

void checkpoint_core::add(std::unique_ptr<checkpoint_entry> entry) {
  require_name(entry->name());
  const auto lock = lock_unless_forked();
  entries_.push_back(std::move(entry));
}

void checkpoint_core::drop(const std::string& name) noexcept {
  const std::lock_guard lock(guard_);
  std::erase_if(entries_, [&](const auto& entry) { return entry->name() == name; });
}

void checkpoint_core::save(const io::save_options& options) {
  if (const auto group = ranks(); group.ranks != nullptr)
    return group.ranks->save({path_, group.entries, this, keep_}, options);
  const auto lock = lock_unless_forked();
  throw_lost_save();
  const auto save = begin(options);
  save->write(0, save->chunks(), chunk_threads());
  save->finish();
}

ticket checkpoint_core::save_async(const io::save_options& options,
                                   std::weak_ptr<ticket_state_keeper> keeper) {
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
  if (bytes != 0) memory = std::make_shared<tensor<std::byte, pageable_space>>("checkpoint::snapshot", bytes);
  const int threads = chunk_threads();
  save->write(0, first, threads);
  save->snapshot(first, save->chunks(), memory == nullptr ? nullptr : memory->data(), threads);
  // Few threads write: the others are left to training.
  background_ = std::shared_ptr<background_save>(
      new background_save(std::move(save), first, std::max(1, threads / 8), std::move(memory)),
      delete_in_own_process());
  return ticket_of(background_, std::move(keeper));
}

void checkpoint_core::load(const io::load_options& options) {
  require_choice("load", options);
  if (const auto group = ranks(); group.ranks != nullptr)
    return group.ranks->load({path_, group.entries, this, keep_}, options);
  const auto lock = lock_unless_forked();
  print_lost_save();
  load_checkpoint(path_, entries_, options);
}

bool checkpoint_core::exists(const io::load_options& options) {
  require_choice("exists", options);
  if (const auto group = ranks(); group.ranks != nullptr)
    return group.ranks->exists({path_, group.entries, this, keep_}, options);
  const auto lock = lock_unless_forked();
  wait_for_background();
  return has_checkpoint(path_, {options.generation, options.name});
}

std::vector<std::uint64_t> checkpoint_core::generations() {
  const auto lock = lock_unless_forked();
  wait_for_background();
  return generations_in(path_);
}

std::vector<std::string> checkpoint_core::names() {
  const auto lock = lock_unless_forked();
  wait_for_background();
  return checkpoint_names_in(path_);
}

void checkpoint_core::wait_for_background() const {
  if (background_ != nullptr) background_->wait();
}

checkpoint_core::rank_group checkpoint_core::ranks() {
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

std::exception_ptr checkpoint_core::end_background() {
  if (background_ == nullptr) return nullptr;
  background_->wait();
  auto lost = background_->leave();
  background_ = nullptr;
  return lost;
}

void checkpoint_core::throw_lost_save() {
  if (const auto lost = end_background()) std::rethrow_exception(lost);
}

void checkpoint_core::print_lost_save() {
  if (const auto lost = end_background()) print_unheard(lost);
}

std::unique_ptr<checkpoint_save> checkpoint_core::begin(const io::save_options& options) {
  require_checkpoint_name("save", options.name);
  checkpoint_content content;
  for (const auto& entry : entries_) {
    manifest_entry& description = content.entries.emplace_back();
    description.name = entry->name();
    entry->describe(description, content.arrays);
  }
  for (const auto& array : content.arrays)
    if (array.accesses != nullptr) array.accesses->wait_for_writes();
  return std::make_unique<checkpoint_save>(path_, checkpoint_place{keep_, options.name}, std::move(content),
                                           options.changes);
}

std::unique_lock<std::mutex> checkpoint_core::lock_unless_forked() const {
  return lock_unless_lost(guard_, user_, "io::checkpoint");
}

}  // namespace ferry::detail
