// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/checkpoint.hpp>

#include "checkpoint_core.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::io {

checkpoint::checkpoint(std::string path)
    : core_(std::make_unique<ferry::detail::checkpoint_core>(std::move(path))) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

const std::string& checkpoint::path() const { return core_->path(); }
void checkpoint::track(const std::string& name) { core_->track(name); }
void checkpoint::mark_all(const std::string& name) { core_->mark_all(name); }
void checkpoint::save(const save_options& options) { core_->save(options); }
void checkpoint::load(const load_options& options) { core_->load(options); }

void checkpoint::add_entry(std::unique_ptr<ferry::detail::checkpoint_entry> entry) {
  core_->add(std::move(entry));
}

void checkpoint::add_number(const std::string& name, std::string_view dtype, std::size_t bytes,
                            void* number) {
  ferry::detail::checkpoint_array array;
  array.schema.dtype = dtype;
  array.schema.element_bytes = static_cast<std::uint32_t>(bytes);
  array.label = name;
  array.row_bytes = array.row_stride = bytes;
  array.data = static_cast<std::byte*>(number);
  ferry::detail::choose_chunks(array.schema, array.row_bytes);
  core_->add(std::make_unique<ferry::detail::array_entry>(
      name, "value", std::vector<ferry::detail::manifest_fact>{}, std::move(array)));
}

void checkpoint::require_name(const std::string& name) const { core_->require_name(name); }
void checkpoint::drop(const std::string& name) noexcept { core_->drop(name); }

void checkpoint::mark_rows(const std::string& name, const std::vector<std::int64_t>& rows) {
  core_->mark_changed(name, rows);
}

ticket checkpoint::save_in_background(const save_options& options,
                                      std::weak_ptr<ferry::detail::ticket_state_keeper> keeper) {
  return core_->save_async(options, std::move(keeper));
}

}  // namespace ferry::io
