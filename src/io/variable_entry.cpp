// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/variable_entry.hpp>

#include "value_words.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/make_variable_entry.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <locale>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {
namespace {

manifest_array array_of_elements(const char* dtype, std::size_t bytes) {
  manifest_array element;
  element.dtype = dtype;
  element.element_bytes = static_cast<std::uint32_t>(bytes);
  return element;
}

/// A type's name as a program has it.
std::string words_of_type(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> words(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && words != nullptr ? std::string(words.get()) : name;
}

/// None if the bytes are not those of texts_entry::value().
std::optional<std::vector<std::string>> texts_in(std::string_view bytes) {
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (bytes.size() < length) return std::nullopt;
    texts.emplace_back(bytes.substr(0, static_cast<std::size_t>(length)));
    bytes.remove_prefix(static_cast<std::size_t>(length));
  }
  return texts;
}

std::string text_of_fact(const manifest_entry& entry, const char* name) {
  const manifest_fact* const fact = entry.fact(name);
  return fact == nullptr ? std::string() : fact->words;
}

}  // namespace

std::unique_ptr<checkpoint_entry> make_number_entry(const std::string& name, std::string_view dtype,
                                                    std::size_t bytes, const void* number, bool is_const) {
  checkpoint_array array;
  array.schema.dtype = dtype;
  array.schema.element_bytes = static_cast<std::uint32_t>(bytes);
  array.label = name;
  array.row_bytes = array.row_stride = bytes;
  array.data = static_cast<std::byte*>(const_cast<void*>(number));
  array.read_only = is_const;
  choose_chunks(array.schema, array.row_bytes);
  return std::make_unique<array_entry>(name, "value", std::vector<manifest_fact>{}, std::move(array));
}

variable_entry::variable_entry(std::string name, std::string kind, manifest_array element, bool is_list,
                               bool is_const)
    : checkpoint_entry(std::move(name)),
      kind_(std::move(kind)),
      element_(std::move(element)),
      is_list_(is_list),
      is_const_(is_const) {}

checkpoint_array variable_entry::array_of(std::string&& value) const {
  const auto memory = std::make_shared<std::string>(std::move(value));
  checkpoint_array array;
  array.schema = element_;
  if (is_list_) array.schema.extents = {memory->size() / element_.element_bytes};
  array.label = name();
  array.row_bytes = array.row_stride = element_.element_bytes;
  choose_chunks(array.schema, array.row_bytes);
  array.data = reinterpret_cast<std::byte*>(memory->data());
  array.owner = memory;
  return array;
}

void variable_entry::describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const {
  checkpoint_array array = array_of(value());
  description.kind = kind_;
  description.facts = facts_;
  description.arrays.push_back(array.schema);
  arrays.push_back(std::move(array));
}

void variable_entry::prepare(const load_source& source, const manifest_entry& stored,
                             std::vector<load_step>&) {
  require_kind(source, stored, kind_);
  const manifest_array* const array = stored.array("");
  if (array == nullptr) source.fail(name(), "the file has no value for it");
  manifest_entry present;
  present.facts = facts_;
  present.arrays.push_back(element_);
  const bool fits = array->dtype == element_.dtype && array->element_bytes == element_.element_bytes &&
                    array->extents.size() == (is_list_ ? 1U : 0U) && stored.facts == facts_;
  if (!fits) source.fail(name(), "it is " + words(stored) + " in the file, and " + words(present) + " here");
  std::string loaded(static_cast<std::size_t>(array->bytes()), '\0');
  std::vector<std::byte> scratch;
  for (std::size_t place = 0; place < array->chunks.size(); ++place)
    source.files.read_chunk(*array, place,
                            reinterpret_cast<std::byte*>(loaded.data()) + place * array->chunk_bytes, scratch,
                            "entry '" + name() + "'");
  if (is_const_) {
    const std::string now = value();
    if (loaded != now) source.fail(name(), difference(loaded, now) + compared_because_const);
    return;
  }
  if (const std::string why = accept(std::move(loaded)); !why.empty()) source.fail(name(), why);
}

std::string variable_entry::difference(const std::string& loaded, const std::string& present) const {
  return differing_texts(loaded, present);
}

text_entry::text_entry(std::string name, const std::string& text, bool is_const)
    : variable_entry(std::move(name), "text", array_of_elements("u8", 1), true, is_const), text_(text) {}

std::string text_entry::accept(std::string&& loaded) {
  loaded_ = std::move(loaded);
  is_loaded_ = true;
  return {};
}

void text_entry::commit() noexcept {
  // A text that was added as a variable; add() knows.
  if (std::exchange(is_loaded_, false)) const_cast<std::string&>(text_).swap(loaded_);
  loaded_.clear();
}

std::string text_entry::words(const manifest_entry&) const { return "a text"; }

texts_entry::texts_entry(std::string name, const std::vector<std::string>& texts, bool is_const)
    : variable_entry(std::move(name), "texts", array_of_elements("u8", 1), true, is_const), texts_(texts) {}

std::string texts_entry::value() const {
  std::string bytes;
  for (const auto& text : texts_) {
    const std::uint64_t length = text.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return bytes;
}

std::string texts_entry::accept(std::string&& loaded) {
  loaded_ = texts_in(loaded);
  return loaded_ ? std::string() : "its bytes in the file are no list of texts";
}

void texts_entry::commit() noexcept {
  if (loaded_) const_cast<std::vector<std::string>&>(texts_).swap(*loaded_);
  loaded_.reset();
}

std::string texts_entry::words(const manifest_entry&) const { return "a list of texts"; }

std::string texts_entry::difference(const std::string& loaded, const std::string&) const {
  const auto stored = texts_in(loaded);
  if (!stored) return "its bytes in the file are no list of texts";
  if (stored->size() != texts_.size())
    return "has " + std::to_string(stored->size()) + " texts in the file, and " +
           std::to_string(texts_.size()) + " here";
  const auto [was, now] = std::mismatch(stored->begin(), stored->end(), texts_.begin());
  return "text " + std::to_string(was - stored->begin()) + " " + differing_texts(*was, *now);
}

struct_entry::struct_entry(std::string name, const void* object, std::size_t bytes, reader read,
                           const std::string& layout, bool is_const)
    : variable_entry(std::move(name), "struct", array_of_elements("struct", bytes), false, is_const),
      object_(object),
      bytes_(bytes),
      read_(read) {
  if (layout.find('\0') != std::string::npos || layout.size() > 1000)
    throw invalid_argument("ferry::io::checkpoint: '" + this->name() +
                           "': the name of a layout has at most 1000 bytes, none of which is zero");
  facts_.push_back({"layout", manifest_fact::text, layout, {}});
}

std::string struct_entry::value() const {
  std::string bytes(bytes_, '\0');
  read_(object_, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

std::string struct_entry::accept(std::string&& loaded) {
  loaded_ = std::move(loaded);
  return {};
}

void struct_entry::commit() noexcept {
  if (!loaded_.empty()) std::memcpy(const_cast<void*>(object_), loaded_.data(), bytes_);
  loaded_.clear();
}

std::string struct_entry::words(const manifest_entry& entry) const {
  const std::string layout = text_of_fact(entry, "layout");
  return "a struct of " + std::to_string(entry.array("")->element_bytes) + " bytes " +
         (layout.empty() ? "without the name of a layout" : "with the layout '" + layout + "'");
}

std::string struct_entry::difference(const std::string& loaded, const std::string& present) const {
  return differing_bytes(loaded, present);
}

random_entry::random_entry(std::string name, const std::type_info& type, bool is_const)
    : variable_entry(std::move(name), "random", array_of_elements("u8", 1), true, is_const) {
  facts_.push_back({"type", manifest_fact::text, type.name(), {}});
}

std::string random_entry::value() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.exceptions(std::ios::badbit);  // a lack of memory would cut the text
  write(text);
  return text.str();
}

std::string random_entry::accept(std::string&& loaded) {
  std::istringstream text(loaded);
  text.imbue(std::locale::classic());
  text.exceptions(std::ios::badbit);
  const bool is_read = read(text) && (text >> std::ws).eof();
  return is_read ? std::string()
                 : "its text in the file is not one that " + words_of_type(facts_.front().words) + " writes";
}

std::string random_entry::words(const manifest_entry& entry) const {
  return words_of_type(text_of_fact(entry, "type"));
}

}  // namespace ferry::detail
