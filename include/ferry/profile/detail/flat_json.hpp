#pragma once

#include <ferry/tensor/detail/finite.hpp>

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// A reader and a writer of one flat JSON object of numbers and strings, as needed for a machine's profile. A
/// JSON library would add more than a second of compilation to every program that includes ferry.
namespace ferry::detail {

struct json_field {
  std::string key;
  bool is_number = false;
  double number = 0;
  std::string text;
};

/// Reads one flat object. For invalid text it sets `why` and returns the members read so far.
class flat_json_reader {
 public:
  flat_json_reader(std::string_view text, std::string& why) : text_(text), why_(why) {}

  std::vector<json_field> read() {
    std::vector<json_field> found;
    if (!expect('{')) return found;
    skip_space();
    bool more = peek() != '}';
    while (more) {
      json_field field;
      if (!string(field.key) || !expect(':') || !value(field)) return found;
      found.push_back(std::move(field));
      skip_space();
      more = peek() == ',';
      if (more) ++at_;
    }
    if (!expect('}')) return found;
    skip_space();
    if (at_ != text_.size()) fail("has more behind the object");
    return found;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool fail(const char* what) {
    if (why_.empty()) why_ = std::string(what) + " at byte " + std::to_string(at_);
    return false;
  }
  bool expect(char wanted) {
    skip_space();
    if (peek() != wanted) {
      const char what[] = {'l', 'a', 'c', 'k', 's', ' ', wanted, '\0'};
      return fail(what);
    }
    ++at_;
    return true;
  }
  bool string(std::string& into) {
    if (!expect('"')) return false;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return fail("has a control character in a string");
      if (c == '\\') {
        c = ++at_ < text_.size() ? text_[at_] : '\0';
        if (c != '"' && c != '\\' && c != '/') return fail("has an escape that no profile uses");
      }
      into.push_back(c);
    }
    return fail("ends within a string");
  }
  bool value(json_field& field) {
    skip_space();
    if (peek() == '"') return string(field.text);
    field.is_number = true;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), field.number);
    if (error != std::errc{} || !is_finite(field.number)) return fail("has neither a number nor a string");
    at_ += static_cast<std::size_t>(end - begin);
    return true;
  }

  std::string_view text_;
  std::string& why_;
  std::size_t at_ = 0;
};

inline std::string json_text(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made.push_back('\\');
    made.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return made + "\"";
}

/// The shortest text that reads back as the same number, independent of the locale.
inline std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

}  // namespace ferry::detail
