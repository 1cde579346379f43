// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/optimizer.hpp>
#include <ferry/concepts/transform.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An engine of <random>, adaptors included, or a distribution, which may hold a number for its next call.
template <class T>
concept RandomState = requires(T& object, const T& constant, std::ostream& output, std::istream& input) {
  typename T::result_type;
  output << constant;
  input >> object;
}
&&(
    requires(T& engine) {
      engine();
      engine.discard(1ULL);
    } ||
    requires(T & distribution) {
      typename T::param_type;
      distribution.reset();
    });

/// How a variable is kept that is no array.
enum class variable_kind : std::uint8_t { none, number, text, texts, random, record };

/// True for arrays whose elements are their values: a copy of their bytes is one in another process, too.
template <class T>
consteval bool is_array_of_values() {
  if constexpr (ArrayLike<T>)
    return FileElement<file_element<T>>;
  else
    return false;
}

template <class T>
consteval variable_kind kind_of_variable() {
  using plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<plain, std::vector<std::string>>) {
    return variable_kind::texts;
  } else if constexpr (std::is_volatile_v<T> || ArrayLike<plain> || std::is_reference_v<T>) {
    return variable_kind::none;
  } else if constexpr (std::is_enum_v<plain> || std::is_arithmetic_v<plain>) {
    return variable_kind::number;
  } else if constexpr (std::is_same_v<plain, std::string>) {
    return variable_kind::text;
  } else if constexpr (!(std::is_class_v<plain> || std::is_union_v<plain>)) {
    return variable_kind::none;
  } else if constexpr (dtype_name<plain>() != "struct") {
    return variable_kind::number;
  } else if constexpr (RandomState<plain>) {
    return variable_kind::random;
  } else if constexpr (std::is_trivially_copyable_v<plain> && !std::is_empty_v<plain> &&
                       !refers_elsewhere<plain> && !Optimizer<plain> && !Transform<plain>) {
    return variable_kind::record;
  } else {
    return variable_kind::none;
  }
}

template <class T>
inline constexpr bool is_kept_variable = kind_of_variable<T>() != variable_kind::none;

/// The number that a variable of variable_kind::number is saved as.
template <class T>
using number_of_variable =
    typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>, std::remove_const<T>>::type;

/// A variable that is no array and no number, as the bytes of its value. A load reads them before an object
/// changes, and commit() sets the variable. That of a constant compares them.
class variable_entry final : public checkpoint_entry {
 public:
  /// The functions of a kind of variables.
  struct functions {
    std::function<std::string()> value;  ///< now
    /// Keeps a value of the file for commit(), which calls `set`. Returns why it is none, or an empty text.
    /// For variables that are not const.
    std::function<std::string(std::string&& loaded, std::function<void()>& set)> accept;
    /// "a text", "a struct of 16 bytes with the layout 'v1'"
    std::function<std::string(const manifest_entry&)> words;
    /// Two values that differ, in words.
    std::function<std::string(const std::string& loaded, const std::string& present)> difference;
  };

  /// `schema`: the entry without its value, the extents of which, if it is a list, are those of its bytes.
  variable_entry(manifest_entry schema, bool is_list, bool is_const, functions calls)
      : checkpoint_entry(schema.name),
        schema_(std::move(schema)),
        is_list_(is_list),
        is_const_(is_const),
        calls_(std::move(calls)) {}

  void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const override;
  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override;
  void commit() noexcept override {
    if (set_) set_();
    set_ = nullptr;
  }

 private:
  manifest_entry schema_;
  bool is_list_;
  bool is_const_;
  functions calls_;
  std::function<void()> set_;
};

/// A number of a type that dtype_name knows.
std::unique_ptr<checkpoint_entry> make_number_entry(const std::string& name, std::string_view dtype,
                                                    std::size_t bytes, const void* number, bool is_const);
std::unique_ptr<checkpoint_entry> make_text_entry(const std::string& name, const std::string& text,
                                                  bool is_const);
std::unique_ptr<checkpoint_entry> make_texts_entry(const std::string& name,
                                                   const std::vector<std::string>& texts, bool is_const);
/// A trivially copyable struct. `layout`: the user's name of its members. `read`: copies it without padding.
std::unique_ptr<checkpoint_entry> make_struct_entry(const std::string& name, const void* object,
                                                    std::size_t bytes,
                                                    void (*read)(const void* object, std::byte* value),
                                                    const std::string& layout, bool is_const);
/// An object that writes its state as text. `read` returns what sets the object, or nothing for a text that
/// the object does not write.
std::unique_ptr<checkpoint_entry> make_random_entry(const std::string& name, const std::type_info& type,
                                                    bool is_const, std::function<void(std::ostream&)> write,
                                                    std::function<std::function<void()>(std::istream&)> read);

/// The bytes of a struct. Those between its members are zero if the compiler knows where they are, so that
/// equal structs have equal bytes.
template <class Struct>
void read_struct(const void* object, std::byte* value) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  if constexpr (!std::has_unique_object_representations_v<Struct>) {
    struct room {
      alignas(Struct) std::byte bytes[sizeof(Struct)];
    };
    const auto copy = std::make_unique<room>();
    std::memcpy(copy->bytes, object, sizeof(Struct));
    __builtin_clear_padding(reinterpret_cast<Struct*>(copy->bytes));
    std::memcpy(value, copy->bytes, sizeof(Struct));
    return;
  }
#endif
#endif
  std::memcpy(value, object, sizeof(Struct));
}

/// The entry of a variable. `layout`: of a struct.
template <class Variable>
std::unique_ptr<checkpoint_entry> make_variable_entry(const std::string& name, Variable& variable,
                                                      [[maybe_unused]] const std::string& layout) {
  constexpr variable_kind kind = kind_of_variable<Variable>();
  constexpr bool is_const = std::is_const_v<Variable>;
  using plain = std::remove_const_t<Variable>;
  if constexpr (kind == variable_kind::number) {
    using number = number_of_variable<Variable>;
    return make_number_entry(name, dtype_name<number>(), sizeof(number), &variable, is_const);
  } else if constexpr (kind == variable_kind::text) {
    return make_text_entry(name, variable, is_const);
  } else if constexpr (kind == variable_kind::texts) {
    return make_texts_entry(name, variable, is_const);
  } else if constexpr (kind == variable_kind::random) {
    const auto write = [&variable](std::ostream& text) { text << variable; };
    const auto read = [&variable](std::istream& text) -> std::function<void()> {
      const auto loaded = std::make_shared<plain>(variable);
      if (!(text >> *loaded)) return nullptr;
      return [&variable, loaded] {
        if constexpr (!is_const) variable = std::move(*loaded);
      };
    };
    return make_random_entry(name, typeid(plain), is_const, write, read);
  } else {
    require_whole_element<plain>();
    return make_struct_entry(name, std::addressof(variable), sizeof(plain), &read_struct<plain>, layout,
                             is_const);
  }
}

}  // namespace ferry::detail
