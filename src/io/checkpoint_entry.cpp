// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/checkpoint_entry.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/load_options.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void load_source::fail(const std::string& entry, const std::string& what) const {
  throw_io_error("checkpoint", path, "entry '" + entry + "': " + what);
}

void load_into(const load_source& from, const std::string& entry, const manifest_array* stored,
               const checkpoint_array& to, std::vector<load_step>& steps) {
  const std::string part = to.schema.name.empty() ? "" : "'" + to.schema.name + "' ";
  if (stored == nullptr) from.fail(entry, "the file has no array " + part + "for it");
  if (to.read_only) from.fail(entry, part + "'" + to.label + "' is const, so nothing can be loaded into it");
  const bool same = stored->dtype == to.schema.dtype && stored->element_bytes == to.schema.element_bytes;
  const bool converts = to.convert != nullptr && stored->element_bytes != 0 &&
                        floating_dtype_bytes(stored->dtype) == stored->element_bytes;
  if (stored->extents != to.schema.extents || !(same || (from.convert && converts)))
    from.fail(entry, part + "is " + stored->describe() + " in the file, and '" + to.label + "' is " +
                         to.schema.describe() +
                         (!same && converts && stored->extents == to.schema.extents
                              ? "; load_options::convert would convert it"
                              : ""));
  steps.push_back({stored, to, "entry '" + entry + "'" + (part.empty() ? "" : ", array " + part)});
}

void require_kind(const load_source& from, const manifest_entry& stored, const std::string& kind) {
  if (stored.kind != kind)
    from.fail(stored.name,
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

void array_entry::describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const {
  checkpoint_array now = current();
  to.kind = kind_;
  to.facts = facts_;
  to.arrays.push_back(now.schema);
  arrays.push_back(std::move(now));
}

void array_entry::prepare(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to) {
  require_kind(from, stored, kind_);
  for (const auto& each : facts_) {
    const manifest_fact* const there = stored.fact(each.name);
    if (there == nullptr || *there != each)
      from.fail(name(), each.name + " is " + (there == nullptr ? "missing" : there->describe()) +
                            " in the file, and " + each.describe() + " here");
  }
  load_into(from, name(), stored.array(array_.schema().name), current(), to);
}

checkpoint_array array_entry::current() const {
  return look_ != nullptr ? look_(object_, name()) : array_.current(name());
}

}  // namespace ferry::detail
