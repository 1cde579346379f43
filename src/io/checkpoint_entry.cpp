// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/load_options.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void load_source::fail(const std::string& entry, const std::string& problem) const {
  throw_io_error("checkpoint", path, "entry '" + entry + "': " + problem);
}

void load_into(const load_source& source, const std::string& entry, const manifest_array* stored,
               const checkpoint_array& array, std::vector<load_step>& steps) {
  const std::string part = array.schema.name.empty() ? "" : "'" + array.schema.name + "' ";
  if (stored == nullptr) source.fail(entry, "the file has no array " + part + "for it");
  const bool same =
      stored->dtype == array.schema.dtype && stored->element_bytes == array.schema.element_bytes;
  const bool converts = array.convert != nullptr && stored->element_bytes != 0 &&
                        floating_dtype_bytes(stored->dtype) == stored->element_bytes;
  if (stored->extents != array.schema.extents || !(same || (source.convert && converts)))
    source.fail(entry, part + "is " + stored->describe() + " in the file, and '" + array.label + "' is " +
                           array.schema.describe() +
                           (!same && converts && stored->extents == array.schema.extents
                                ? "; load_options::convert would convert it"
                                : ""));
  steps.push_back({stored, array, "entry '" + entry + "'" + (part.empty() ? "" : ", array " + part)});
}

void require_kind(const load_source& source, const manifest_entry& stored, const std::string& kind) {
  if (stored.kind != kind)
    source.fail(stored.name,
                "it is of kind '" + stored.kind + "' in the file, and of kind '" + kind + "' here");
}

kept_array::kept_array(checkpoint_array array)
    : array_(std::move(array)), accesses_(array_.accesses), is_tensor_(array_.accesses != nullptr) {
  array_.accesses = nullptr;  // so that the end of the tensor shows
}

checkpoint_array kept_array::current(const std::string& entry) const {
  checkpoint_array now = array_;
  now.accesses = accesses_.lock();
  if (is_tensor_ && now.accesses == nullptr)
    throw invalid_argument("ferry::io::checkpoint: '" + entry + "': '" + now.label +
                           "' was destroyed, or was given other memory, after it was added");
  return now;
}

array_entry::array_entry(std::string name, std::string kind, std::vector<manifest_fact> facts,
                         checkpoint_array array)
    : checkpoint_entry(std::move(name)),
      kind_(std::move(kind)),
      facts_(std::move(facts)),
      array_(std::move(array)) {}

void array_entry::describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const {
  checkpoint_array now = current();
  description.kind = kind_;
  description.facts = facts_;
  description.arrays.push_back(now.schema);
  arrays.push_back(std::move(now));
}

void array_entry::prepare(const load_source& source, const manifest_entry& stored,
                          std::vector<load_step>& steps) {
  require_kind(source, stored, kind_);
  for (const auto& fact : facts_) {
    const manifest_fact* const loaded = stored.fact(fact.name);
    if (loaded == nullptr || *loaded != fact)
      source.fail(name(), fact.name + " is " + (loaded == nullptr ? "missing" : loaded->describe()) +
                              " in the file, and " + fact.describe() + " here");
  }
  const manifest_array* const array = stored.array(array_.schema().name);
  load_into(source, name(), array, target_of(array), steps);
}

checkpoint_array array_entry::target_of(const manifest_array* stored) {
  loaded_ = nullptr;
  checkpoint_array now = current();
  if (make_like_ == nullptr || stored == nullptr || stored->extents.size() != 1 ||
      stored->extents == now.schema.extents)
    return now;
  auto like = make_like_(object_, static_cast<std::size_t>(stored->extents[0]));
  checkpoint_array target = look_(like.get(), name());
  loaded_ = like;
  target.owner = std::move(like);
  return target;
}

void array_entry::commit() noexcept {
  if (loaded_ != nullptr) swap_(object_, loaded_.get());
  loaded_ = nullptr;
}

checkpoint_array array_entry::current() const {
  return look_ != nullptr ? look_(object_, name()) : array_.current(name());
}

}  // namespace ferry::detail
