// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/safetensors_file.hpp>
#include <ferry/io/save_safetensors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

std::string_view safetensors_entry::type_name() const {
  return has_known_type() ? safetensors_dtypes[type].name : std::string_view(unknown_type);
}

bool has_bytes(const safetensors_entry& entry) {
  std::uint64_t bits = entry.has_known_type() ? safetensors_dtypes[entry.type].bits : 1;
  bool is_empty = false;
  for (const std::size_t extent : entry.shape) {
    is_empty = is_empty || extent == 0;
    if (!grow_bytes(bits, extent)) return false;
  }
  if (is_empty) bits = 0;
  if (!entry.has_known_type() && bits != 0) return true;
  return bits % 8 == 0 && bits / 8 == entry.end - entry.begin;
}

namespace {

/// Takes the values of the header's JSON one after the other. The first failure is kept.
class header_events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit header_events(safetensors_header& header) : header_(header) {}

  /// The first failure; empty if there was none.
  [[nodiscard]] const std::string& why() const { return why_; }

  bool key(string_t& name) override {
    key_ = name;
    if (part_ == part::tensor)
      return name == "dtype"          ? accept(has_type_)
             : name == "shape"        ? accept(has_shape_)
             : name == "data_offsets" ? accept(has_offsets_)
                                      : fail("the key " + json_quoted(name.substr(0, 40)) + " is unknown");
    if (part_ == part::metadata) header_.metadata.emplace_back(name, std::string());
    if (part_ != part::top) return true;
    if (name == metadata_key) return accept(has_metadata_);
    header_.entries.emplace_back().name = name;
    has_type_ = has_shape_ = has_offsets_ = false;
    return true;
  }
  bool string(string_t& value) override {
    if (part_ == part::metadata) {
      header_.metadata.back().second = value;
      return true;
    }
    if (part_ != part::tensor || key_ != "dtype") return refuse();
    auto& entry = header_.entries.back();
    while (entry.has_known_type() && safetensors_dtypes[entry.type].name != value) ++entry.type;
    if (!entry.has_known_type()) entry.unknown_type = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fail("a number exceeds 63 bits");
    if (part_ == part::shape) {
      header_.entries.back().shape.push_back(static_cast<std::size_t>(value));
      return true;
    }
    if (part_ != part::offsets) return refuse();
    auto& entry = header_.entries.back();
    (offsets_ == 0 ? entry.begin : entry.end) = value;
    return ++offsets_ <= 2 || fail("data_offsets are not two");
  }
  bool start_object(std::size_t) override {
    if (part_ == part::start)
      part_ = part::top;
    else if (part_ == part::top)
      part_ = key_ == metadata_key ? part::metadata : part::tensor;
    else
      return refuse();
    return true;
  }
  bool end_object() override {
    if (part_ == part::tensor && !(has_type_ && has_shape_ && has_offsets_))
      return fail("a tensor lacks one of dtype, shape and data_offsets");
    part_ = part::top;
    return true;
  }
  bool start_array(std::size_t) override {
    if (part_ != part::tensor || key_ == "dtype") return refuse();
    part_ = key_ == "shape" ? part::shape : part::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (part_ == part::offsets && offsets_ != 2) return fail("data_offsets are not two");
    part_ = part::tensor;
    return true;
  }
  bool null() override { return (part_ == part::top && key_ == metadata_key) || refuse(); }
  bool boolean(bool) override { return refuse(); }
  bool number_integer(number_integer_t) override { return fail("a number has a sign"); }
  bool number_float(number_float_t, const string_t& text) override {
    return fail("the number " + text.substr(0, 40) + " is no integer of 63 bits");
  }
  bool binary(binary_t&) override { return refuse(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view text = error.what();  // "[json.exception...] parse error at line 1, ..."
    return fail(joined("it is no JSON: ", text.substr(std::min(text.size(), text.find("] ") + 2))));
  }

 private:
  enum class part { start, top, tensor, shape, offsets, metadata };

  static constexpr std::string_view metadata_key = "__metadata__";

  bool fail(std::string_view problem) {
    why_ = problem;
    return false;
  }
  bool refuse() { return fail("the value of " + json_quoted(key_.substr(0, 40)) + " is of another type"); }
  bool accept(bool& has) {
    return !std::exchange(has, true) || fail(json_quoted(key_) + " comes twice in an object");
  }

  safetensors_header& header_;
  part part_ = part::start;
  std::string key_;
  bool has_metadata_ = false, has_type_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0;
  std::string why_;
};

}  // namespace

std::string parse_safetensors(std::string_view text, std::uint64_t bytes, safetensors_header& header) {
  if (const std::size_t valid = valid_utf8(text); valid != text.size())
    return "byte " + std::to_string(valid) + " of the header is not UTF-8";
  if (text.empty() || text.front() != '{') return "the header does not begin with '{'";
  // The parser would take it for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    return "byte " + std::to_string(zero) + " of the header is no JSON";
  header_events events(header);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return events.why();

  const auto repeated = [](auto& names) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    return twice == names.end() ? std::string() : json_quoted(twice->substr(0, 200)) + " comes twice";
  };
  std::vector<std::string_view> names;
  for (const auto& [key, value] : header.metadata) names.push_back(key);
  if (auto why = repeated(names); !why.empty()) return "the metadata " + why;
  names.clear();
  for (const auto& entry : header.entries) names.push_back(entry.name);
  if (auto why = repeated(names); !why.empty()) return "the tensor " + why;

  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const auto& entry : header.entries) {
    const auto say = [&](const char* problem) {
      return "the tensor " + json_quoted(entry.name) + " " + problem;
    };
    if (entry.begin != end) return say(entry.begin < end ? "overlaps another one" : "comes after a hole");
    if (entry.end < entry.begin) return say("ends before it begins");
    if (!has_bytes(entry)) return say("has another number of bytes than its shape");
    end = entry.end;
  }
  if (end != bytes)
    return "the header claims " + std::to_string(end) + " bytes of tensors, and the file has " +
           std::to_string(bytes);
  return {};
}

safetensors_header read_safetensors_header(const file& source) {
  const std::uint64_t size = source.size();
  if (size < 8) source.fail(joined("it is no safetensors file: it has only ", size, " bytes"));
  std::uint64_t length = 0;
  source.read_at(&length, sizeof length, 0);
  if (length > longest_safetensors_header)
    source.fail(joined("it is no safetensors file: its header claims ", length, " bytes; the most are ",
                       longest_safetensors_header));
  if (length > size - 8) source.fail("the file ends within its header");
  std::string text(static_cast<std::size_t>(length), '\0');
  source.read_at(text.data(), text.size(), 8);
  safetensors_header header;
  header.bytes = 8 + length;
  const std::string why = parse_safetensors(text, size - header.bytes, header);
  if (!why.empty()) source.fail("it is malformed: " + why);
  return header;
}

std::string make_safetensors_header(const std::vector<safetensors_entry>& entries,
                                    const safetensors_metadata& metadata) {
  std::string text = "{";
  const auto numbers = [&text](const auto& list) {
    for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(list[i]);
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (std::size_t i = 0; i < metadata.size(); ++i)
      text += (i == 0 ? "" : ",") + json_quoted(metadata[i].first) + ":" + json_quoted(metadata[i].second);
    text += "}";
  }
  for (const auto& entry : entries) {
    text += (text.size() > 1 ? "," : "") + json_quoted(entry.name) + R"(:{"dtype":)" +
            json_quoted(entry.type_name());
    text += R"(,"shape":[)";
    numbers(entry.shape);
    text += R"(],"data_offsets":[)";
    numbers(std::array{entry.begin, entry.end});
    text += "]}";
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

namespace {

/// Throws invalid_argument for names that a header can't hold.
void require_safetensors_names(const std::string& path, std::vector<std::string_view> names,
                               const char* kind) {
  const auto refuse = [&](std::string_view name, const char* why) {
    throw invalid_argument("ferry::io::save_safetensors: " + path + ": the " + kind + " " +
                           json_quoted(name) + " " + why);
  };
  for (const auto& name : names) {
    if (valid_utf8(name) != name.size())
      refuse(name.substr(0, valid_utf8(name)), "is not UTF-8 after these bytes");
    if (name == "__metadata__") refuse(name, "has a name that the format keeps for itself");
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse(*twice, "comes twice");
}

}  // namespace

}  // namespace ferry::detail

namespace ferry::io {

safetensors_file::safetensors_file(const std::string& path)
    : source_(detail::file::open_to_read("open_safetensors", path)),
      header_(detail::read_safetensors_header(source_)) {}

std::vector<std::string> safetensors_file::names() const {
  std::vector<std::string> names;
  for (const auto& entry : header_.entries) names.push_back(entry.name);
  return names;
}

const detail::safetensors_entry* safetensors_file::find(std::string_view name) const {
  const auto& entries = header_.entries;
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& candidate) { return candidate.name == name; });
  return entry == entries.end() ? nullptr : &*entry;
}

const detail::safetensors_entry& safetensors_file::entry_of(std::string_view name) const {
  if (const auto* entry = find(name)) return *entry;
  constexpr std::size_t longest = 1000;
  const auto& entries = header_.entries;
  std::string list;
  std::size_t shown = 0;
  for (; shown < entries.size() && list.size() < longest; ++shown)
    list += (shown == 0 ? "" : ", ") + detail::json_quoted(entries[shown].name.substr(0, longest));
  if (shown < entries.size()) list += " and " + std::to_string(entries.size() - shown) + " more";
  throw out_of_range("ferry::io::safetensors_file: " + path() + ": there is no tensor " +
                     detail::json_quoted(name) + "; the file has " + (shown == 0 ? "none" : list));
}

detail::stored_array safetensors_file::stored(const detail::safetensors_entry& entry) const {
  const auto refuse = [&](const auto&... problem) {
    throw invalid_argument(detail::joined("ferry::io::safetensors_file: ", path(), ": the tensor ",
                                          detail::json_quoted(entry.name), problem...));
  };
  if (entry.shape.size() > max_rank)
    refuse(" has rank ", entry.shape.size(), ", above the largest, ", max_rank);
  if (!entry.has_known_type())
    refuse(" has elements of the type ", detail::json_quoted(entry.unknown_type.substr(0, 40)),
           ", which is unknown");
  const auto& type = detail::safetensors_dtypes[entry.type];
  detail::stored_array array;
  array.name = detail::json_quoted(entry.name);
  array.elements = {type.kind, type.bits * type.elements() / 8};
  array.type_text = type.name;
  array.rank = std::max<std::size_t>(1, entry.shape.size());
  array.extents[0] = 1;
  std::copy(entry.shape.begin(), entry.shape.end(), array.extents.begin());
  array.offset = header_.bytes + entry.begin;
  auto& width = array.extents[array.rank - 1];
  if (width % type.elements() != 0) refuse(" has rows of ", width, " numbers of 4 bits, which are no pairs");
  width /= type.elements();
  return array;
}

safetensors_file open_safetensors(const std::string& path) { return safetensors_file(path); }

void save_safetensors(const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<std::string_view> names;
  for (const auto& array : arrays) names.push_back(array.entry().name);
  detail::require_safetensors_names(path, names, "array");
  names.clear();
  for (const auto& [key, value] : metadata) {
    names.push_back(key);
    detail::require_safetensors_names(path, {value}, "metadata's value");
  }
  detail::require_safetensors_names(path, names, "metadata's key");

  // The order of the reference implementation: large elements first, so that all are aligned; then by name.
  std::vector<const named_array*> order;
  for (const auto& array : arrays) order.push_back(&array);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto& left = a->entry();
    const auto& right = b->entry();
    return left.type != right.type ? left.type > right.type : left.name < right.name;
  });
  std::vector<detail::safetensors_entry> entries;
  std::uint64_t bytes = 0;
  for (const auto* array : order) {
    auto& entry = entries.emplace_back(array->entry());
    entry.begin = bytes;
    entry.end = bytes += array->entry().end;
  }
  const std::string header = detail::make_safetensors_header(entries, metadata);
  if (header.size() - 8 > detail::longest_safetensors_header)
    throw invalid_argument(detail::joined("ferry::io::save_safetensors: ", path, ": the header would have ",
                                          header.size() - 8, " bytes; the most are ",
                                          detail::longest_safetensors_header));
  detail::atomic_file target("save_safetensors", path);
  target.content().reserve(header.size() + bytes);
  target.content().write_at(header.data(), header.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i]->write(target.content(), header.size() + entries[i].begin);
  target.commit();
}

}  // namespace ferry::io
