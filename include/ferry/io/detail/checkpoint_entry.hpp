// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An array of a checkpoint and the memory that it is loaded into.
struct load_step {
  const manifest_array* stored;
  checkpoint_array target;
  std::string label;  ///< for messages
};

/// A checkpoint that is being loaded.
struct load_source {
  const std::string& path;
  const checkpoint_files& files;
  bool convert;  ///< true if floating-point elements may be converted

  [[noreturn]] void fail(const std::string& entry, const std::string& problem) const;
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
  virtual void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const = 0;
  /// Throws if the file's entry does not fit the object, which stays as it is. Takes the memory that
  /// commit() needs and lists the arrays to load.
  virtual void prepare(const load_source& source, const manifest_entry& stored,
                       std::vector<load_step>& steps) = 0;
  /// After the arrays have been loaded: sets everything else.
  virtual void commit() noexcept {}
  /// For an object whose rows lie on several ranks: how these save and load together; null for all others.
  [[nodiscard]] virtual const checkpoint_ranks* ranks() const { return nullptr; }

 private:
  std::string name_;
};

/// A save or a load of one of the ranks that have parts of an object. All of them take part.
struct ranks_call {
  const std::string& path;
  const std::vector<checkpoint_entry*>& entries;  ///< in the order in which they were added
  const void* object;                             ///< the checkpoint, which ranks of one process may share
  int keep;                                       ///< generations of the folder
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
  /// True if the calling thread acts for one of the ranks; else it acts for all of them.
  [[nodiscard]] virtual bool acts_for_one() const = 0;
  virtual void save(const ranks_call& call, const io::save_options& options) const = 0;
  virtual void load(const ranks_call& call, const io::load_options& options) const = 0;
  /// True if rank 0 sees the checkpoint: all ranks decide alike.
  [[nodiscard]] virtual bool exists(const ranks_call& call, const io::load_options& options) const = 0;
};

/// Checks that an array of the file fits the memory, and lists it. Memory that is read only is compared.
void load_into(const load_source& source, const std::string& entry, const manifest_array* stored,
               const checkpoint_array& array, std::vector<load_step>& steps);

/// Throws unless the file's entry is of this kind.
void require_kind(const load_source& source, const manifest_entry& stored, const std::string& kind);

/// An array between the calls that use it. That of a tensor ends with the tensor.
class kept_array {
 public:
  explicit kept_array(checkpoint_array array);

  [[nodiscard]] const manifest_array& schema() const { return array_.schema; }
  /// For the entry of this name. Throws invalid_argument if the tensor has ended or has other memory.
  [[nodiscard]] checkpoint_array current(const std::string& entry) const;

 private:
  checkpoint_array array_;
  std::weak_ptr<access_tracker> accesses_;
  bool is_tensor_;
};

/// A table, an 8-bit table or a number: one array.
class array_entry final : public checkpoint_entry {
 public:
  array_entry(std::string name, std::string kind, std::vector<manifest_fact> facts, checkpoint_array array);

  /// The entry of a vector: its memory and extents are those that it has at each call, and a load gives it
  /// the length that was saved.
  template <class Array>
  void look_at(Array& array) {
    object_ = &array;
    look_ = [](const void* object, const std::string& name) {
      return as_stored("", make_ref(*static_cast<Array*>(const_cast<void*>(object))), name);
    };
    if constexpr (!std::is_const_v<Array> && std::is_default_constructible_v<typename Array::value_type>) {
      make_like_ = [](const void* object, std::size_t size) -> std::shared_ptr<void> {
        return std::make_shared<Array>(size, static_cast<const Array*>(object)->get_allocator());
      };
      swap_ = [](const void* object, void* loaded) noexcept {
        static_cast<Array*>(const_cast<void*>(object))->swap(*static_cast<Array*>(loaded));
      };
    }
  }

  void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const override;
  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override;
  void commit() noexcept override;

 private:
  [[nodiscard]] checkpoint_array current() const;
  /// Memory for an array of the file that has another length than the vector; else the vector's.
  [[nodiscard]] checkpoint_array target_of(const manifest_array* stored);

  std::string kind_;
  std::vector<manifest_fact> facts_;
  kept_array array_;
  const void* object_ = nullptr;
  checkpoint_array (*look_)(const void* object, const std::string& name) = nullptr;
  std::shared_ptr<void> (*make_like_)(const void* object, std::size_t size) = nullptr;
  void (*swap_)(const void* object, void* loaded) noexcept = nullptr;
  std::shared_ptr<void> loaded_;  ///< a vector of the saved length, until commit()
};

/// How an object of another part of the library enters a checkpoint. Specialised by the header that has it in
/// a checkpoint, with a function entry(name, object), or entry(name, rule, stays, state) for states; `stays`:
/// the rule is a variable, which load sets.
template <class Object>
struct checkpoint_part;

template <class Object>
concept CheckpointPart = requires {
  sizeof(checkpoint_part<Object>);
};

/// The end of messages about values that differ.
inline constexpr const char* compared_because_const = "; it was added as const, so it is compared";

/// "1.5", "-3", "true", or the bytes of a struct.
std::string element_words(std::string_view dtype, std::span<const std::byte> element);
/// "is 3 in the file, and 4 here", of two texts that differ: long ones from the first difference on.
std::string differing_texts(std::string_view loaded, std::string_view present);
/// As above, of the bytes of a struct.
std::string differing_bytes(std::string_view loaded, std::string_view present);
/// As above, of the elements of an array, of which `first` is the number of the first one.
std::string differing_elements(const manifest_array& array, std::size_t first,
                               std::span<const std::byte> loaded, std::span<const std::byte> present);

/// The entries of a checkpoint, in the order in which they were added.
using checkpoint_entries = std::vector<std::unique_ptr<checkpoint_entry>>;

/// The memory of each thread of a load. What the chunks of all arrays need is taken before an object changes,
/// so a load that lacks memory changes none.
class load_memory {
 public:
  struct of_thread {
    std::vector<std::byte> bytes;     ///< of a chunk
    std::vector<std::byte> elements;  ///< its elements, converted
    std::vector<std::byte> scratch;   ///< a patch, or a span of strided rows
    std::shared_ptr<void> apart;      ///< see rows_apart::reserve
  };

  explicit load_memory(int threads) : threads_(threads) {}

  /// Takes the memory for an array.
  void reserve(const load_step& step);

  /// Calls work(memory with the bytes of the chunk, its index) for every chunk of an array that reserve() has
  /// been called for.
  void for_each_stored_chunk(const checkpoint_files& files, const load_step& step,
                             function_ref<void(of_thread&, std::size_t)> work);

 private:
  int threads_;
  std::vector<of_thread> memory_;
};

/// Lists what an entry loads from the file. Throws if the file does not fit it.
void prepare_entry(const load_source& source, const manifest& says, checkpoint_entry& entry,
                   std::vector<load_step>& steps);

/// Throws if the file has entries that were not added.
void require_all_added(const load_source& source, const manifest& says,
                       std::span<checkpoint_entry* const> entries);

/// The bytes of a chunk as elements of the array; `elements` is memory for them.
const std::byte* as_elements(const load_step& step, const std::vector<std::byte>& bytes,
                             std::vector<std::byte>& elements);

/// Reads an array of the file, and compares it with memory that is read only. Throws io_error if it is
/// damaged or differs.
void check_array(const std::string& folder, const checkpoint_files& files, const load_step& step,
                 load_memory& memory);

/// Fills an array from the file, unless it is read only. Takes no memory.
void load_array(const checkpoint_files& files, const load_step& step, load_memory& memory);

/// Loads a checkpoint into the entries: checks all of it, then changes them.
void load_checkpoint(const std::string& folder, const checkpoint_entries& entries,
                     const io::load_options& options);

}  // namespace ferry::detail
