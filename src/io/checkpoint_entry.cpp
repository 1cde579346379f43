// SPDX-License-Identifier: Apache-2.0

#include <ferry/io/detail/checkpoint_entry.hpp>

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
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
  const bool converts = array.converter_from != nullptr && stored->element_bytes != 0 &&
                        floating_dtype(stored->dtype).bytes == stored->element_bytes;
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

namespace {

std::string hexadecimal_words(std::span<const std::byte> bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string words = "0x";
  for (const std::byte byte : bytes) {
    words += digits[std::to_integer<unsigned>(byte) >> 4U];
    words += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return words;
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string quoted_part(std::string_view text, std::size_t begin) {
  constexpr std::size_t most = 60;
  const std::string_view part = text.substr(std::min(begin, text.size()), most);
  return (begin == 0 ? "'" : "'...") + std::string(part) + (begin + part.size() < text.size() ? "...'" : "'");
}

/// "[3, 4]"
std::string index_words(const manifest_array& array, std::uint64_t element) {
  std::string words;
  for (std::size_t i = array.extents.size(); i-- > 0;) {
    words = std::to_string(element % array.extents[i]) + (words.empty() ? "" : ", ") + words;
    element /= array.extents[i];
  }
  return "[" + words + "]";
}

/// A manifest with its open files.
struct opened_checkpoint {
  manifest says;
  std::unique_ptr<checkpoint_files> files;
};

/// Opens a checkpoint. A save by another process may remove files between the two looks; then the
/// new manifest is read.
opened_checkpoint open_checkpoint(const std::string& folder, const checkpoint_choice& choice) {
  opened_checkpoint checkpoint;
  for (int tries = 0; tries < 8; ++tries) {
    bool gone = false;
    checkpoint.says = read_manifest(folder, nullptr, choice);
    checkpoint.files =
        std::make_unique<checkpoint_files>(folder, checkpoint.says, tries < 7 ? &gone : nullptr);
    if (!gone) break;
  }
  return checkpoint;
}

/// The part of the array that a chunk of the file has: first byte, and number of elements.
struct chunk_part {
  chunk_part(const load_step& step, std::size_t index, std::size_t bytes)
      : offset(index * step.stored->chunk_bytes / step.stored->element_bytes *
               step.target.schema.element_bytes),
        count(bytes / step.stored->element_bytes) {}

  std::uint64_t offset;
  std::size_t count;
};

}  // namespace

std::string element_words(std::string_view dtype, std::span<const std::byte> element) {
  if (const auto type = floating_dtype(dtype); type.bytes == element.size() && !element.empty()) {
    double number = 0;
    converter_of<double>(type)(element.data(), &number, 1);
    return manifest_fact{"", manifest_fact::real, "", {std::bit_cast<std::uint64_t>(number)}}.describe();
  }
  const bool is_signed = dtype.starts_with('i');
  if (!is_signed && !dtype.starts_with('u') && dtype != "bool") return hexadecimal_words(element);
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), std::min(sizeof bits, element.size()));
  if (dtype == "bool") return bits != 0 ? "true" : "false";
  const std::size_t unused = 8 * (sizeof bits - std::min(sizeof bits, element.size()));
  return is_signed ? std::to_string(static_cast<std::int64_t>(bits << unused) >> unused)
                   : std::to_string(bits);
}

std::string differing_texts(std::string_view loaded, std::string_view present) {
  const std::size_t position = first_difference(loaded, present);
  const std::size_t begin = position < 40 ? 0 : position - 20;
  return "is " + quoted_part(loaded, begin) + " in the file, and " + quoted_part(present, begin) + " here" +
         (begin == 0 ? "" : ", from byte " + std::to_string(position) + " on");
}

std::string differing_bytes(std::string_view loaded, std::string_view present) {
  const std::size_t position = first_difference(loaded, present);
  const auto words_from = [&](std::string_view bytes) {
    constexpr std::size_t most = 16;
    return hexadecimal_words(std::as_bytes(std::span(bytes.substr(position, most))));
  };
  return "is " + words_from(loaded) + " in the file, and " + words_from(present) + " here, from byte " +
         std::to_string(position) + " of " + std::to_string(present.size()) + " on";
}

std::string differing_elements(const manifest_array& array, std::size_t first,
                               std::span<const std::byte> loaded, std::span<const std::byte> present) {
  const std::size_t bytes = array.element_bytes;
  std::size_t element = 0;
  while (std::memcmp(loaded.data() + element * bytes, present.data() + element * bytes, bytes) == 0)
    ++element;
  const auto words_in = [&](std::span<const std::byte> elements) {
    return element_words(array.dtype, elements.subspan(element * bytes, bytes));
  };
  const std::string subject =
      array.extents.empty() ? std::string() : "element " + index_words(array, first + element) + " ";
  return subject + "is " + words_in(loaded) + " in the file, and " + words_in(present) + " here";
}

void load_memory::reserve(const load_step& step) {
  const std::size_t chunks = step.stored->chunks.size();
  const auto team = std::min(chunks, static_cast<std::size_t>(std::max(1, threads_)));
  if (memory_.size() < team) memory_.resize(team);
  std::size_t bytes = 0, elements = 0, scratch = 0, written = 0;
  for (std::size_t index = 0; index < chunks; ++index) {
    const auto stored = static_cast<std::size_t>(step.stored->bytes_of_chunk(index));
    const chunk_part chunk(step, index, stored);
    const std::size_t length = chunk.count * step.target.schema.element_bytes;
    bytes = std::max(bytes, stored);
    written = std::max(written, length);
    if (step.stored->dtype != step.target.schema.dtype) elements = std::max(elements, length);
    for (const auto& patch : step.stored->chunks[index].patches)
      scratch = std::max(scratch, patch_bytes(*step.stored, patch.units));
  }
  scratch = std::max(scratch, step.target.most_scratch_bytes(written));
  for (std::size_t i = 0; i < team; ++i) {
    memory_[i].bytes.reserve(bytes);
    memory_[i].elements.reserve(elements);
    memory_[i].scratch.reserve(scratch);
    if (step.target.apart != nullptr) step.target.apart->reserve(memory_[i].apart, written);
  }
}

void load_memory::for_each_stored_chunk(const checkpoint_files& files, const load_step& step,
                                        function_ref<void(of_thread&, std::size_t)> work) {
  const auto chunk_count = static_cast<std::int64_t>(step.stored->chunks.size());
  parallel(chunk_count, 1, threads_for_chunks(threads_), [&](front_queue& chunks, int thread) {
    of_thread& memory = memory_[static_cast<std::size_t>(thread)];
    for (std::size_t index = 0; chunks.take(index);) {
      memory.bytes.resize(static_cast<std::size_t>(step.stored->bytes_of_chunk(index)));
      files.read_chunk(*step.stored, index, memory.bytes.data(), memory.scratch, step.label);
      work(memory, index);
    }
  });
}

void prepare_entry(const load_source& source, const manifest& says, checkpoint_entry& entry,
                   std::vector<load_step>& steps) {
  const manifest_entry* const stored = says.entry(entry.name());
  if (stored == nullptr) {
    std::string names;
    for (const auto& candidate : says.entries) names += (names.empty() ? "'" : ", '") + candidate.name + "'";
    source.fail(entry.name(), "the file has no such entry; it has " + (names.empty() ? "none" : names));
  }
  entry.prepare(source, *stored, steps);
}

void require_all_added(const load_source& source, const manifest& says,
                       std::span<checkpoint_entry* const> entries) {
  for (const auto& stored : says.entries)
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const checkpoint_entry* entry) { return entry->name() == stored.name; }))
      source.fail(stored.name,
                  "it is in the file, and nothing of that name was added; add it, or load with "
                  "load_options::partial");
}

const std::byte* as_elements(const load_step& step, const std::vector<std::byte>& bytes,
                             std::vector<std::byte>& elements) {
  if (step.stored->dtype == step.target.schema.dtype) return bytes.data();
  const std::size_t count = bytes.size() / step.stored->element_bytes;
  elements.resize(count * step.target.schema.element_bytes);
  step.target.converter_from(floating_dtype(step.stored->dtype))(bytes.data(), elements.data(), count);
  return elements.data();
}

void check_array(const std::string& folder, const checkpoint_files& files, const load_step& step,
                 load_memory& memory) {
  const auto& target = step.target;
  if (!target.read_only) return memory.for_each_stored_chunk(files, step, [](auto&&...) {});
  memory.for_each_stored_chunk(files, step, [&](load_memory::of_thread& buffers, std::size_t index) {
    const std::size_t bytes = target.schema.element_bytes;
    const chunk_part chunk(step, index, buffers.bytes.size());
    const std::span loaded(as_elements(step, buffers.bytes, buffers.elements), chunk.count * bytes);
    std::vector<std::byte> present(loaded.size());
    target.read(chunk.offset, present.size(), present.data(), buffers.scratch);
    if (std::memcmp(loaded.data(), present.data(), present.size()) == 0) return;
    const auto first = static_cast<std::size_t>(chunk.offset / bytes);
    throw_io_error("checkpoint", folder,
                   step.label + ": " + differing_elements(target.schema, first, loaded, present) +
                       compared_because_const);
  });
}

void load_array(const checkpoint_files& files, const load_step& step, load_memory& memory) {
  const auto& target = step.target;
  if (target.read_only) return;
  memory.for_each_stored_chunk(files, step, [&](load_memory::of_thread& buffers, std::size_t index) {
    const chunk_part chunk(step, index, buffers.bytes.size());
    const std::size_t length = chunk.count * target.schema.element_bytes;
    const std::byte* const elements = as_elements(step, buffers.bytes, buffers.elements);
    if (target.apart != nullptr)
      target.apart->write(chunk.offset, length, elements, buffers.apart);
    else
      target.write(chunk.offset, length, elements, buffers.scratch);
  });
}

void load_checkpoint(const std::string& folder, const checkpoint_entries& entries,
                     const io::load_options& options) {
  const opened_checkpoint checkpoint = open_checkpoint(folder, {options.generation, options.name});
  const load_source source{folder, *checkpoint.files, options.convert};
  std::vector<load_step> steps;
  for (const auto& entry : entries) prepare_entry(source, checkpoint.says, *entry, steps);
  if (!options.partial) {
    std::vector<checkpoint_entry*> added;
    for (const auto& entry : entries) added.push_back(entry.get());
    require_all_added(source, checkpoint.says, added);
  }
  for (const auto& step : steps)
    if (step.target.accesses != nullptr) step.target.accesses->wait_for_all();
  load_memory memory(chunk_threads());
  for (const auto& step : steps) memory.reserve(step);
  for (const auto& step : steps) check_array(folder, *checkpoint.files, step, memory);

  // Everything fits and is intact, and the memory is there. From here only the hardware can fail.
  for (const auto& step : steps) load_array(*checkpoint.files, step, memory);
  for (const auto& entry : entries) entry->commit();
}

dtype floating_dtype(std::string_view name) {
  for (const auto& [known, type] : checkpoint_dtypes)
    if (known == name && type.kind >= dtype_kind::real && type.kind < dtype_kind::e2m1) return type;
  return {};
}

std::byte* checkpoint_array::in_place(std::uint64_t offset) const {
  return is_dense() && read_device == nullptr && apart == nullptr ? data + offset : nullptr;
}

std::size_t checkpoint_array::most_scratch_bytes(std::size_t bytes) const {
  if (bytes == 0 || write_device == nullptr || is_dense()) return 0;
  return static_cast<std::size_t>((bytes / row_bytes + 2) * row_stride);
}

void checkpoint_array::read(std::uint64_t offset, std::size_t bytes, std::byte* target,
                            std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (apart != nullptr) return apart->read(offset, bytes, target);
  if (read_device != nullptr && is_dense()) return read_device(target, data + offset, bytes);
  const std::byte* present = data;
  std::uint64_t begin = 0;
  if (read_device != nullptr) {
    begin = read_span(offset, bytes, scratch);
    present = scratch.data();
  }
  for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t copied, std::size_t count) {
    std::memcpy(target + copied, present + (position - begin), count);
  });
}

void checkpoint_array::write(std::uint64_t offset, std::size_t bytes, const std::byte* source,
                             std::vector<std::byte>& scratch) const {
  if (bytes == 0) return;
  if (write_device != nullptr && is_dense()) return write_device(data + offset, source, bytes);
  std::byte* present = data;
  std::uint64_t begin = 0;
  if (write_device != nullptr) {
    begin = read_span(offset, bytes, scratch);
    present = scratch.data();
  }
  for_each_run(offset, bytes, [&](std::uint64_t position, std::size_t copied, std::size_t count) {
    std::memcpy(present + (position - begin), source + copied, count);
  });
  if (write_device != nullptr) write_device(data + begin, scratch.data(), scratch.size());
}

std::uint64_t checkpoint_array::read_span(std::uint64_t offset, std::size_t bytes,
                                          std::vector<std::byte>& scratch) const {
  const auto memory_offset = [this](std::uint64_t position) {
    return position / row_bytes * row_stride + position % row_bytes;
  };
  const std::uint64_t first = memory_offset(offset);
  scratch.resize(static_cast<std::size_t>(memory_offset(offset + bytes - 1) + 1 - first));
  read_device(scratch.data(), data + first, scratch.size());
  return first;
}

checkpoint_array describe_array(std::string name, const array_note& array, bool has_dense_rows,
                                std::string_view dtype, std::size_t element_bytes, const std::string& owner) {
  if (array.rank == 0 || !has_dense_rows)
    throw invalid_argument("ferry::io::checkpoint: '" + owner + "': " + array.describe() +
                           (array.rank == 0
                                ? " is an empty handle without extents"
                                : " has rows whose elements are not adjacent; ferry::copy it first"));
  manifest_array schema;
  schema.name = std::move(name);
  schema.dtype = dtype;
  schema.element_bytes = static_cast<std::uint32_t>(element_bytes);
  std::uint64_t row_bytes = element_bytes;
  for (std::size_t i = 0; i < array.rank; ++i) {
    schema.extents.push_back(static_cast<std::uint64_t>(array.extents[i]));
    if (i != 0) row_bytes *= schema.extents.back();
  }
  return array_in_memory(std::move(schema), row_bytes, std::string(array.label));
}

checkpoint_array array_in_memory(manifest_array schema, std::uint64_t row_bytes, std::string label,
                                 void* data, std::shared_ptr<void> owner) {
  constexpr std::uint64_t usual_chunk = std::uint64_t{1} << 22, longest_row = std::uint64_t{1} << 16,
                          usual_unit = std::uint64_t{1} << 12;
  std::uint64_t unit = row_bytes == 0 || row_bytes > longest_row ? schema.element_bytes : row_bytes;
  unit *= std::max<std::uint64_t>(1, usual_unit / unit);
  schema.unit_bytes = static_cast<std::uint32_t>(unit);
  schema.chunk_bytes = std::max<std::uint64_t>(1, usual_chunk / unit) * unit;
  checkpoint_array array;
  array.schema = std::move(schema);
  array.label = std::move(label);
  array.row_bytes = array.row_stride = row_bytes;
  array.data = static_cast<std::byte*>(data);
  array.owner = std::move(owner);
  return array;
}

int chunk_threads() {
  constexpr int most = 16;
  const int threads = Kokkos::is_initialized()
                          ? static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency())
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(threads, 1, most);
}

}  // namespace ferry::detail
