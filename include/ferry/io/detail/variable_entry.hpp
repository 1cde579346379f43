// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstring>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A variable that is no array and no number, as the bytes of its value. A load reads them before an object
/// changes, and commit() sets the variable. That of a constant compares them.
class variable_entry : public checkpoint_entry {
 public:
  void describe(manifest_entry& description, std::vector<checkpoint_array>& arrays) const final;
  void prepare(const load_source& source, const manifest_entry& stored, std::vector<load_step>& steps) final;

 protected:
  /// `element`: the type and the size of the elements of the value's array, which has rank 1 if `is_list`.
  variable_entry(std::string name, std::string kind, manifest_array element, bool is_list, bool is_const);

  std::vector<manifest_fact> facts_;

 private:
  /// The value now.
  [[nodiscard]] virtual std::string value() const = 0;
  /// Keeps a value of the file for commit(). Returns why it is none, or an empty text.
  [[nodiscard]] virtual std::string accept(std::string&& loaded) = 0;
  /// "a text", "a struct of 16 bytes with the layout 'v1'"
  [[nodiscard]] virtual std::string words(const manifest_entry& entry) const = 0;
  /// Two values that differ, in words.
  [[nodiscard]] virtual std::string difference(const std::string& loaded, const std::string& present) const;

  [[nodiscard]] checkpoint_array array_of(std::string&& value) const;

  std::string kind_;
  manifest_array element_;
  bool is_list_;
  bool is_const_;
};

/// A std::string.
class text_entry final : public variable_entry {
 public:
  text_entry(std::string name, const std::string& text, bool is_const);
  void commit() noexcept override;

 private:
  [[nodiscard]] std::string value() const override { return text_; }
  [[nodiscard]] std::string accept(std::string&& loaded) override;
  [[nodiscard]] std::string words(const manifest_entry& entry) const override;

  const std::string& text_;
  std::string loaded_;
  bool is_loaded_ = false;
};

/// A std::vector of std::string.
class texts_entry final : public variable_entry {
 public:
  texts_entry(std::string name, const std::vector<std::string>& texts, bool is_const);
  void commit() noexcept override;

 private:
  [[nodiscard]] std::string value() const override;
  [[nodiscard]] std::string accept(std::string&& loaded) override;
  [[nodiscard]] std::string words(const manifest_entry& entry) const override;
  [[nodiscard]] std::string difference(const std::string& loaded, const std::string& present) const override;

  const std::vector<std::string>& texts_;
  std::optional<std::vector<std::string>> loaded_;
};

/// A trivially copyable struct.
class struct_entry final : public variable_entry {
 public:
  using reader = void (*)(const void* object, std::byte* value);

  /// `layout`: the user's name of the struct's members. `read`: copies the struct without its padding.
  struct_entry(std::string name, const void* object, std::size_t bytes, reader read,
               const std::string& layout, bool is_const);
  void commit() noexcept override;

 private:
  [[nodiscard]] std::string value() const override;
  [[nodiscard]] std::string accept(std::string&& loaded) override;
  [[nodiscard]] std::string words(const manifest_entry& entry) const override;
  [[nodiscard]] std::string difference(const std::string& loaded, const std::string& present) const override;

  const void* object_;
  std::size_t bytes_;
  reader read_;
  std::string loaded_;
};

/// An object that writes its state as text: an engine or a distribution of <random>.
class random_entry : public variable_entry {
 protected:
  random_entry(std::string name, const std::type_info& type, bool is_const);
  /// False for a text that the object does not write.
  [[nodiscard]] virtual bool read(std::istream& text) = 0;
  virtual void write(std::ostream& text) const = 0;

 private:
  [[nodiscard]] std::string value() const final;
  [[nodiscard]] std::string accept(std::string&& loaded) final;
  [[nodiscard]] std::string words(const manifest_entry& entry) const final;
};

template <class Random>
class random_entry_of final : public random_entry {
  using plain = std::remove_const_t<Random>;

 public:
  random_entry_of(std::string name, Random& object)
      : random_entry(std::move(name), typeid(plain), std::is_const_v<Random>), object_(object) {}

  void commit() noexcept override {
    if constexpr (!std::is_const_v<Random>)
      if (loaded_ != nullptr) object_ = std::move(*loaded_);
    loaded_ = nullptr;
  }

 private:
  bool read(std::istream& text) override {
    loaded_ = std::make_unique<plain>(object_);
    return static_cast<bool>(text >> *loaded_);
  }
  void write(std::ostream& text) const override { text << object_; }

  Random& object_;
  std::unique_ptr<plain> loaded_;
};

/// The bytes of a struct. Those between its members are zero if the compiler can tell where they are, so that
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

}  // namespace ferry::detail
