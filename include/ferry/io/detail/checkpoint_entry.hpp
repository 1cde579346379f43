// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/load_options.hpp>
#include <ferry/io/save_options.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An array of a checkpoint and the memory that it is loaded into.
struct load_step {
  const manifest_array* from;
  checkpoint_array to;
  std::string what;  ///< for messages
};

/// A checkpoint that is being loaded.
struct load_source {
  const std::string& path;
  const checkpoint_files& files;
  bool convert;  ///< whether floating-point elements may be converted

  [[noreturn]] void fail(const std::string& entry, const std::string& what) const {
    throw_io_error("checkpoint", path, "entry '" + entry + "': " + what);
  }
};

class checkpoint_ranks;

/// An object that was added to a checkpoint.
class checkpoint_entry {
 public:
  explicit checkpoint_entry(std::string name) : name_(std::move(name)) {}
  checkpoint_entry(const checkpoint_entry&) = delete;
  checkpoint_entry& operator=(const checkpoint_entry&) = delete;
  virtual ~checkpoint_entry() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The object as it is now: facts and arrays, and the arrays' memory in the same order.
  virtual void describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const = 0;
  /// Throws where the file's entry does not fit the object, which stays as it is. Takes the memory that
  /// commit() needs and lists the arrays to load.
  virtual void prepare(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to) = 0;
  /// After the arrays have been loaded: sets everything else.
  virtual void commit() noexcept {}
  /// For an object whose rows are spread over ranks: how these save and load together; null for all others.
  [[nodiscard]] virtual const checkpoint_ranks* ranks() const { return nullptr; }

 private:
  std::string name_;
};

/// A save or a load of one of the ranks that have parts of an object. All of them take part.
struct ranks_call {
  const std::string& path;
  const std::vector<checkpoint_entry*>& entries;  ///< in the order in which they were added
  const void* object;                             ///< the checkpoint, which ranks of one process may share
};

/// The ranks that save and load together.
class checkpoint_ranks {
 public:
  checkpoint_ranks() = default;
  checkpoint_ranks(const checkpoint_ranks&) = delete;
  checkpoint_ranks& operator=(const checkpoint_ranks&) = delete;
  virtual ~checkpoint_ranks() = default;

  /// The group, for comparisons.
  [[nodiscard]] virtual const void* group() const = 0;
  /// Whether the calling thread acts for one of the ranks; else it acts for all of them.
  [[nodiscard]] virtual bool acts_for_one() const = 0;
  virtual void save(const ranks_call& of, const io::save_options& options) const = 0;
  virtual void load(const ranks_call& of, const io::load_options& options) const = 0;
};

/// Checks that an array of the file fits the memory, and lists it.
template <class Dependent = void>
void load_into(const late<load_source, Dependent>& from, const std::string& entry,
               const late<manifest_array, Dependent>* stored, const late<checkpoint_array, Dependent>& to,
               std::vector<late<load_step, Dependent>>& steps) {
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

/// Throws unless the file's entry is of this kind.
template <class Dependent = void>
void require_kind(const late<load_source, Dependent>& from, const late<manifest_entry, Dependent>& stored,
                  const std::string& kind) {
  if (stored.kind != kind)
    from.fail(stored.name,
              "it is of kind '" + stored.kind + "' in the file, and of kind '" + kind + "' here");
}

/// An array between the calls that use it. That of a tensor ends with the tensor.
template <class Dependent>
class basic_kept_array {
  using checkpoint_array = late<detail::checkpoint_array, Dependent>;

 public:
  explicit basic_kept_array(checkpoint_array array)
      : array_(std::move(array)), accesses_(array_.accesses), is_tensor_(array_.accesses != nullptr) {
    array_.accesses = nullptr;  // so that the end of the tensor shows
  }

  [[nodiscard]] const late<manifest_array, Dependent>& schema() const { return array_.schema; }
  /// For the entry of this name. Throws invalid_argument where the tensor has ended or has other memory.
  [[nodiscard]] checkpoint_array current(const std::string& entry) const {
    checkpoint_array array = array_;
    array.accesses = accesses_.lock();
    if (is_tensor_ && array.accesses == nullptr)
      throw invalid_argument("ferry::io::checkpoint: '" + entry + "': '" + array.label +
                             "' was destroyed, or was given other memory, after it was added");
    return array;
  }

 private:
  checkpoint_array array_;
  std::weak_ptr<access_tracker> accesses_;
  bool is_tensor_;
};
using kept_array = basic_kept_array<void>;

/// A table, an 8-bit table or a number: one array.
template <class Dependent>
class basic_array_entry final : public checkpoint_entry {
  using manifest_entry = late<detail::manifest_entry, Dependent>;
  using manifest_fact = late<detail::manifest_fact, Dependent>;
  using checkpoint_array = late<detail::checkpoint_array, Dependent>;
  using load_step = late<detail::load_step, Dependent>;
  using load_source = late<detail::load_source, Dependent>;

 public:
  basic_array_entry(std::string name, std::string kind, std::vector<manifest_fact> facts,
                    checkpoint_array array)
      : checkpoint_entry(std::move(name)),
        kind_(std::move(kind)),
        facts_(std::move(facts)),
        array_(std::move(array)) {}

  /// Of an array that lives: its memory and extents are those that it has at each call.
  template <class Array>
  void look_at(Array& array) {
    object_ = &array;
    look_ = [](const void* object, const std::string& name) {
      return as_stored("", make_ref(*static_cast<Array*>(const_cast<void*>(object))), name);
    };
  }

  void describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const override {
    checkpoint_array array = current();
    to.kind = kind_;
    to.facts = facts_;
    to.arrays.push_back(array.schema);
    arrays.push_back(std::move(array));
  }
  void prepare(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to) override {
    require_kind(from, stored, kind_);
    for (const auto& each : facts_) {
      const manifest_fact* const there = stored.fact(each.name);
      if (there == nullptr || *there != each)
        from.fail(name(), each.name + " is " + (there == nullptr ? "missing" : there->describe()) +
                              " in the file, and " + each.describe() + " here");
    }
    load_into(from, name(), stored.array(array_.schema().name), current(), to);
  }

 private:
  [[nodiscard]] checkpoint_array current() const {
    return look_ != nullptr ? look_(object_, name()) : array_.current(name());
  }

  std::string kind_;
  std::vector<manifest_fact> facts_;
  basic_kept_array<Dependent> array_;
  const void* object_ = nullptr;
  checkpoint_array (*look_)(const void* object, const std::string& name) = nullptr;
};
using array_entry = basic_array_entry<void>;

/// How an object of another part of the library enters a checkpoint. Specialised by the header that has it in
/// a checkpoint, with a function entry(name, object), or entry(name, rule, stays, state) for states; `stays`:
/// the rule is a variable, which load sets.
template <class Object>
struct checkpoint_part;

template <class Object>
concept CheckpointPart = requires {
  sizeof(checkpoint_part<Object>);
};

}  // namespace ferry::detail
