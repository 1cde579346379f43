// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/checkpoint.hpp>

#include "checkpoint_core.hpp"

#include <ferry/error.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::io {

checkpoint::checkpoint(std::string path, const checkpoint_options& options)
    : core_(std::make_unique<ferry::detail::checkpoint_core>(std::move(path), options)) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

const std::string& checkpoint::path() const { return core_->path(); }
void checkpoint::save(const save_options& options) { core_->save(options); }
void checkpoint::load(const load_options& options) { core_->load(options); }
bool checkpoint::exists(const load_options& options) const { return core_->exists(options); }
std::vector<std::uint64_t> checkpoint::generations() const { return core_->generations(); }
std::vector<std::string> checkpoint::names() const { return core_->names(); }

void checkpoint::add_entry(std::unique_ptr<ferry::detail::checkpoint_entry> entry) {
  core_->add(std::move(entry));
}

void checkpoint::require_name(const std::string& name) const { core_->require_name(name); }
void checkpoint::save_as(const std::string& name) {
  if (name.empty())
    throw invalid_argument(
        "ferry::io::checkpoint::save: the name of the checkpoint is empty; save() without a name makes a generation");
  core_->save({.name = name});
}
void checkpoint::drop(const std::string& name) noexcept { core_->drop(name); }

ticket checkpoint::save_in_background(const save_options& options,
                                      std::weak_ptr<ferry::detail::ticket_state_keeper> keeper) {
  return core_->save_async(options, std::move(keeper));
}

}  // namespace ferry::io
