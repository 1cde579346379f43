// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {
namespace {

/// Puts the values of a text together.
class json_builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  json_builder(json_value& root, std::size_t most_depth, std::string& why)
      : root_(root), most_depth_(most_depth), why_(why) {}

  bool key(string_t& name) override {
    auto& names = open_.back()->content->names;
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fail("the member " + json_quoted(name.substr(0, 40)) + " comes twice in an object");
    if (names.size() == most_members) return fail("an object has too many members");
    names.push_back(std::move(name));
    return true;
  }
  bool null() override { return add(json_value::type::null, 0); }
  bool boolean(bool value) override { return add(json_value::type::boolean, value ? 1 : 0); }
  bool number_unsigned(number_unsigned_t value) override { return add(json_value::type::natural, value); }
  bool number_integer(number_integer_t value) override {
    return add(json_value::type::negative, static_cast<std::uint64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(json_value::type::real, std::bit_cast<std::uint64_t>(value));
  }
  bool string(string_t& value) override {
    json_value& added = place();
    added.content = std::make_unique<json_content>();
    added.content->text = std::move(value);
    added.kind = json_value::type::text;
    return true;
  }
  bool start_object(std::size_t) override { return start(json_value::type::object); }
  bool start_array(std::size_t) override { return start(json_value::type::list); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool binary(binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    return fail(std::string("it is no JSON: ") + error.what());
  }

 private:
  static constexpr std::size_t most_members = 16;

  bool fail(std::string problem) {
    why_ = std::move(problem);
    return false;
  }
  json_value& place() { return open_.empty() ? root_ : open_.back()->content->items.emplace_back(); }
  bool add(json_value::type kind, std::uint64_t bits) {
    json_value& added = place();
    added.kind = kind;
    added.bits = bits;
    return true;
  }
  bool start(json_value::type kind) {
    if (open_.size() == most_depth_) return fail("its values are nested too deeply");
    json_value& added = place();
    added.content = std::make_unique<json_content>();
    added.kind = kind;
    open_.push_back(&added);
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }

  json_value& root_;
  std::size_t most_depth_;
  std::string& why_;
  std::vector<json_value*> open_;  ///< lists and objects; only the last one grows
};

}  // namespace

std::size_t valid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i <= more) return i;
    const auto second = static_cast<unsigned char>(text[i + 1]);
    const unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return i;
    for (std::size_t k = 2; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return i;
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_number(double value) { return nlohmann::json(value).dump(); }

std::string json_value::words() const {
  switch (kind) {
    case type::null:
      return "null";
    case type::boolean:
      return bits != 0 ? "true" : "false";
    case type::natural:
      return std::to_string(bits);
    case type::negative:
      return std::to_string(static_cast<std::int64_t>(bits));
    case type::real:
      return json_number(std::bit_cast<double>(bits));
    case type::text:
      return json_quoted(content->text);
    case type::list:
    case type::object:
      break;
  }
  constexpr std::size_t longest = 200;
  std::string list(1, kind == type::list ? '[' : '{');
  for (std::size_t i = 0; i < content->items.size() && list.size() < longest; ++i) {
    list += i == 0 ? "" : ",";
    if (kind == type::object) list += json_quoted(content->names[i]) + ":";
    list += content->items[i].words();
  }
  return list + (kind == type::list ? "]" : "}");
}

json_value parse_json(std::string_view text, std::size_t most_depth, std::string& why) {
  json_value root;
  // nlohmann's parser takes it for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    why = "it is no JSON: it has a zero byte";
    return root;
  }
  json_builder builder(root, most_depth, why);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder) && why.empty()) why = "it is no JSON";
  return root;
}

}  // namespace ferry::detail
