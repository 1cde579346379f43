// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/variable_entry.hpp>

#include <ferry/io/detail/checkpoint_entry.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
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

/// The entry of a value whose array has elements of this type.
manifest_entry schema_of(const std::string& name, const char* kind, const char* dtype, std::size_t bytes) {
  manifest_entry schema{name, kind, {}, {}};
  manifest_array& element = schema.arrays.emplace_back();
  element.dtype = dtype;
  element.element_bytes = static_cast<std::uint32_t>(bytes);
  return schema;
}

/// A type's name as a program has it.
std::string words_of_type(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> words(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && words != nullptr ? std::string(words.get()) : name;
}

std::string bytes_of_texts(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const auto& text : texts) {
    const std::uint64_t length = text.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
  }
  return bytes;
}

/// None if the bytes are not those of bytes_of_texts().
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
  manifest_array schema;
  schema.dtype = dtype;
  schema.element_bytes = static_cast<std::uint32_t>(bytes);
  checkpoint_array array = array_in_memory(std::move(schema), bytes, name, const_cast<void*>(number));
  array.read_only = is_const;
  return std::make_unique<array_entry>(name, "value", std::vector<manifest_fact>{}, std::move(array));
}

void variable_entry::describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const {
  const auto memory = std::make_shared<std::string>(calls_.value());
  manifest_array schema = schema_.arrays.front();
  const std::uint64_t bytes = schema.element_bytes;
  if (is_list_) schema.extents = {memory->size() / bytes};
  description.kind = schema_.kind;
  description.facts = schema_.facts;
  arrays.push_back(array_in_memory(std::move(schema), bytes, name(), memory->data(), memory));
  description.arrays.push_back(arrays.back().schema);
}

void variable_entry::prepare(const load_source& source, const manifest_entry& stored,
                             std::vector<load_step>&) {
  require_kind(source, stored, schema_.kind);
  const manifest_array* const array = stored.array("");
  if (array == nullptr) source.fail(name(), "the file has no value for it");
  const manifest_array& element = schema_.arrays.front();
  const bool fits = array->dtype == element.dtype && array->element_bytes == element.element_bytes &&
                    array->extents.size() == (is_list_ ? 1U : 0U) && stored.facts == schema_.facts;
  if (!fits)
    source.fail(name(),
                "it is " + calls_.words(stored) + " in the file, and " + calls_.words(schema_) + " here");
  std::string loaded(static_cast<std::size_t>(array->bytes()), '\0');
  source.files.read_array(*array, loaded.data(), "entry '" + name() + "'");
  if (is_const_) {
    const std::string now = calls_.value();
    if (loaded != now) source.fail(name(), calls_.difference(loaded, now) + compared_because_const);
    return;
  }
  if (const std::string why = calls_.accept(std::move(loaded), set_); !why.empty()) source.fail(name(), why);
}

std::unique_ptr<checkpoint_entry> make_text_entry(const std::string& name, const std::string& text,
                                                  bool is_const) {
  variable_entry::functions calls;
  calls.value = [&text] { return text; };
  calls.accept = [&text](std::string&& loaded, std::function<void()>& set) {
    // Not of a constant, so it was added as a variable.
    set = [&text, value = std::make_shared<std::string>(std::move(loaded))] {
      const_cast<std::string&>(text).swap(*value);
    };
    return std::string();
  };
  calls.words = [](const manifest_entry&) { return "a text"; };
  calls.difference = differing_texts;
  return std::make_unique<variable_entry>(schema_of(name, "text", "u8", 1), true, is_const, std::move(calls));
}

std::unique_ptr<checkpoint_entry> make_texts_entry(const std::string& name,
                                                   const std::vector<std::string>& texts, bool is_const) {
  static constexpr const char* no_texts = "its bytes in the file are no list of texts";
  variable_entry::functions calls;
  calls.value = [&texts] { return bytes_of_texts(texts); };
  calls.accept = [&texts](std::string&& loaded, std::function<void()>& set) {
    auto list = texts_in(loaded);
    if (!list) return std::string(no_texts);
    set = [&texts, value = std::make_shared<std::vector<std::string>>(std::move(*list))] {
      const_cast<std::vector<std::string>&>(texts).swap(*value);
    };
    return std::string();
  };
  calls.words = [](const manifest_entry&) { return "a list of texts"; };
  calls.difference = [&texts](const std::string& loaded, const std::string&) -> std::string {
    const auto stored = texts_in(loaded);
    if (!stored) return no_texts;
    if (stored->size() != texts.size())
      return "has " + std::to_string(stored->size()) + " texts in the file, and " +
             std::to_string(texts.size()) + " here";
    const auto [was, now] = std::mismatch(stored->begin(), stored->end(), texts.begin());
    return "text " + std::to_string(was - stored->begin()) + " " + differing_texts(*was, *now);
  };
  return std::make_unique<variable_entry>(schema_of(name, "texts", "u8", 1), true, is_const,
                                          std::move(calls));
}

std::unique_ptr<checkpoint_entry> make_struct_entry(const std::string& name, const void* object,
                                                    std::size_t bytes,
                                                    void (*read)(const void* object, std::byte* value),
                                                    const std::string& layout, bool is_const) {
  if (layout.find('\0') != std::string::npos || layout.size() > 1000)
    throw invalid_argument("ferry::io::checkpoint: '" + name +
                           "': the name of a layout has at most 1000 bytes, none of which is zero");
  manifest_entry schema = schema_of(name, "struct", "struct", bytes);
  schema.facts.push_back({"layout", manifest_fact::text, layout, {}});
  variable_entry::functions calls;
  calls.value = [object, bytes, read] {
    std::string value(bytes, '\0');
    read(object, reinterpret_cast<std::byte*>(value.data()));
    return value;
  };
  calls.accept = [object](std::string&& loaded, std::function<void()>& set) {
    set = [object, value = std::make_shared<std::string>(std::move(loaded))] {
      std::memcpy(const_cast<void*>(object), value->data(), value->size());
    };
    return std::string();
  };
  calls.words = [](const manifest_entry& entry) {
    const std::string name_of_layout = text_of_fact(entry, "layout");
    return "a struct of " + std::to_string(entry.array("")->element_bytes) + " bytes " +
           (name_of_layout.empty() ? "without the name of a layout"
                                   : "with the layout '" + name_of_layout + "'");
  };
  calls.difference = differing_bytes;
  return std::make_unique<variable_entry>(std::move(schema), false, is_const, std::move(calls));
}

std::unique_ptr<checkpoint_entry> make_random_entry(
    const std::string& name, const std::type_info& type, bool is_const,
    std::function<void(std::ostream&)> write, std::function<std::function<void()>(std::istream&)> read) {
  manifest_entry schema = schema_of(name, "random", "u8", 1);
  schema.facts.push_back({"type", manifest_fact::text, type.name(), {}});
  variable_entry::functions calls;
  calls.value = [write = std::move(write)] {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.exceptions(std::ios::badbit);  // a lack of memory would cut the text
    write(text);
    return text.str();
  };
  calls.accept = [&type, read = std::move(read)](std::string&& loaded, std::function<void()>& set) {
    std::istringstream text(loaded);
    text.imbue(std::locale::classic());
    text.exceptions(std::ios::badbit);
    set = read(text);
    if (set != nullptr && (text >> std::ws).eof()) return std::string();
    set = nullptr;
    return "its text in the file is not one that " + words_of_type(type.name()) + " writes";
  };
  calls.words = [](const manifest_entry& entry) { return words_of_type(text_of_fact(entry, "type")); };
  calls.difference = differing_texts;
  return std::make_unique<variable_entry>(std::move(schema), true, is_const, std::move(calls));
}

}  // namespace ferry::detail
