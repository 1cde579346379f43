// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/manifest.hpp>

#include "json.hpp"

#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/tensor/extents.hpp>

#include <isa-l/crc.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ferry::detail {
namespace {

[[noreturn]] void refuse_manifest(const std::string& path, const std::string& problem) {
  throw_io_error("checkpoint", path, "not a manifest that can be read: " + problem);
}

/// JSON has no infinities and no NaNs: these are a text with their bits.
constexpr std::string_view bits_prefix = "\"bits ";

/// Appends the body of a manifest to a text.
class body_writer {
 public:
  explicit body_writer(std::string& text) : text_(text) {}

  void literal(std::string_view words) { text_ += words; }
  template <std::integral Number>
  void value(Number number) {
    text_ += std::to_string(number);
  }
  /// Names may have any bytes: those that are no UTF-8 are a list of numbers.
  void value(const std::string& text) {
    if (valid_utf8(text) == text.size()) {
      text_ += json_quoted(text);
      return;
    }
    literal("[");
    items(text, 0, [this](char byte) { value(static_cast<unsigned char>(byte)); });
    literal("]");
  }
  void signed_value(std::uint64_t bits) { value(static_cast<std::int64_t>(bits)); }
  void real_value(std::uint64_t bits) {
    const auto number = std::bit_cast<double>(bits);
    if (std::isfinite(number))
      text_ += nlohmann::json(number).dump();
    else
      text_.append(bits_prefix).append(std::to_string(bits)) += '"';
  }
  void choice(manifest_fact::kind_of kind, const std::array<std::string_view, 4>& keys) {
    literal(keys[kind - std::size_t{1}]);
  }
  template <class Items, class Visit>
  void items(const Items& list, std::size_t, const Visit& visit) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i != 0) literal(",");
      visit(list[i]);
    }
  }
  /// Begins the items of a list that follow those of another kind, if there are any.
  bool has_more(bool has_items) {
    if (has_items) literal(",");
    return has_items;
  }
  void end() const {}

 private:
  std::string& text_;
};

/// Reads a body as body_writer writes it: the first byte that differs ends it. Lists take the memory of their
/// items, and no more.
class body_reader {
 public:
  body_reader(std::string_view text, const std::string& path) : text_(text), path_(path) {
    if (const std::size_t valid = valid_utf8(text); valid != text.size())
      refuse_manifest(path, joined("byte ", valid, " of its body is not UTF-8"));
  }

  void literal(std::string_view words) {
    if (!take(words)) fail(joined("'", words, "'"));
  }
  template <std::integral Number>
  void value(Number& number) {
    const std::string_view token = remainder().substr(0, remainder().find_first_not_of("-0123456789"));
    number = 0;
    std::from_chars(token.data(), token.data() + token.size(), number);
    if (token != std::to_string(number))
      fail(joined(std::is_signed_v<Number> ? "a signed" : "an unsigned", " number of ", 8 * sizeof(Number),
                  " bits"));
    offset_ += token.size();
  }
  void value(std::string& text) {
    if (!remainder().starts_with('[')) return string(text);
    std::vector<std::uint8_t> bytes;
    literal("[");
    items(bytes, 2, [this](std::uint8_t& byte) { value(byte); });
    literal("]");
    text.assign(bytes.begin(), bytes.end());
    if (valid_utf8(text) == text.size()) fail("a text");
  }
  void signed_value(std::uint64_t& bits) {
    std::int64_t number = 0;
    value(number);
    bits = static_cast<std::uint64_t>(number);
  }
  void real_value(std::uint64_t& bits) {
    if (take(bits_prefix)) {
      value(bits);
      literal("\"");
      if (!std::isfinite(std::bit_cast<double>(bits))) return;
    } else {
      const std::string_view token = remainder().substr(0, remainder().find_first_not_of("+-.0123456789Ee"));
      const auto number = nlohmann::json::parse(token.begin(), token.end(), nullptr, false);
      if (number.is_number_float()) {
        bits = std::bit_cast<std::uint64_t>(number.get<double>());
        offset_ += token.size();
        return;
      }
    }
    fail("a number with a fraction");
  }
  void choice(manifest_fact::kind_of& kind, const std::array<std::string_view, 4>& keys) {
    const auto key = std::find_if(keys.begin(), keys.end(), [this](auto words) { return take(words); });
    if (key == keys.end()) fail("the value of a fact");
    kind = static_cast<manifest_fact::kind_of>(1 + (key - keys.begin()));
  }
  /// Appends the items up to the end of the list, each of which has at least `least` bytes with its comma.
  template <class Item, class Visit>
  void items(std::vector<Item>& list, std::size_t least, const Visit& visit) {
    if (remainder().starts_with(']')) return;
    list.reserve(items_from_here(least));
    do visit(list.emplace_back());
    while (take(","));
  }
  bool has_more(bool) { return take(","); }
  void end() const {
    if (!remainder().empty()) fail("the end");
  }

 private:
  [[noreturn]] void fail(const std::string& missing) const {
    refuse_manifest(path_, joined(missing, " is missing at byte ", offset_,
                                  " of its body, before: ", remainder().substr(0, 40)));
  }
  [[nodiscard]] std::string_view remainder() const { return text_.substr(offset_); }
  bool take(std::string_view words) {
    const bool is_next = remainder().starts_with(words);
    offset_ += is_next ? words.size() : 0;
    return is_next;
  }
  void string(std::string& text) {
    std::size_t end = 1;
    while (end < remainder().size() && remainder()[end] != '"') end += remainder()[end] == '\\' ? 2 : 1;
    const std::string_view token = remainder().substr(0, end + 1);
    const bool is_closed = token.starts_with('"') && end < remainder().size();
    const bool is_plain = is_closed && std::all_of(token.begin(), token.end(), [](char letter) {
                            return letter != '\\' && static_cast<unsigned char>(letter) >= ' ';
                          });
    if (is_plain) {
      text = token.substr(1, end - 1);
    } else {
      const auto value = nlohmann::json::parse(token.begin(), token.end(), nullptr, false);
      if (!is_closed || !value.is_string()) fail("a text");
      text = value.get<std::string>();
    }
    offset_ += token.size();
  }
  /// The items up to the end of a list that has begun, at most.
  [[nodiscard]] std::size_t items_from_here(std::size_t least) const {
    std::size_t commas = 0, depth = 1, i = offset_;
    bool is_text = false;
    for (; i < text_.size() && depth != 0; ++i) {
      const char letter = text_[i];
      if (letter == '"') is_text = !is_text;
      if (letter == '\\') ++i;
      if (is_text) continue;
      if (letter == '[' || letter == '{') ++depth;
      if (letter == ']' || letter == '}') --depth;
      commas += letter == ',' && depth == 1 ? 1 : 0;
    }
    return std::min(commas, (i - offset_) / least) + 1;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t offset_ = 0;
};

/// The format of bodies. Body is their writer or their reader.
template <class Body>
class body_format {
 public:
  explicit body_format(Body body) : body_(body) {}

  template <class Manifest>
  void visit(Manifest& content) {
    list(R"({"files":)", content.files, 23, [this](auto& file) {
      member(R"({"number":)", file.number);
      member(R"(,"bytes":)", file.bytes);
      body_.literal("}");
    });
    list(R"(,"entries":)", content.entries, 45, [this](auto& entry) {
      member(R"({"name":)", entry.name);
      member(R"(,"kind":)", entry.kind);
      list(R"(,"facts":)", entry.facts, 20, [this](auto& fact) { visit_fact(fact); });
      list(R"(,"arrays":)", entry.arrays, 90, [this](auto& array) { visit_array(array); });
      body_.literal("}");
    });
    body_.literal("}");
    body_.end();
  }

 private:
  template <class Value>
  void member(std::string_view key, Value& value) {
    body_.literal(key);
    body_.value(value);
  }
  template <class Items, class Visit>
  void list(std::string_view key, Items& items, std::size_t least, const Visit& visit) {
    body_.literal(key);
    body_.literal("[");
    body_.items(items, least, visit);
    body_.literal("]");
  }
  template <class Fact>
  void visit_fact(Fact& fact) {
    member(R"({"name":)", fact.name);
    body_.choice(fact.kind, {R"(,"text":)", R"(,"f64":)", R"(,"i64":)", R"(,"u64":)"});
    if (fact.kind == manifest_fact::text)
      body_.value(fact.words);
    else
      list("", fact.numbers, 2, [&](auto& bits) {
        if (fact.kind == manifest_fact::real) return body_.real_value(bits);
        if (fact.kind == manifest_fact::whole) return body_.signed_value(bits);
        body_.value(bits);
      });
    body_.literal("}");
  }
  template <class Array>
  void visit_array(Array& array) {
    member(R"({"name":)", array.name);
    member(R"(,"type":)", array.dtype);
    member(R"(,"element_bytes":)", array.element_bytes);
    list(R"(,"extents":)", array.extents, 2, [this](auto& extent) { body_.value(extent); });
    member(R"(,"chunk_bytes":)", array.chunk_bytes);
    member(R"(,"unit_bytes":)", array.unit_bytes);
    list(R"(,"chunks":)", array.chunks, 8, [this](auto& chunk) {
      visit_piece(chunk.piece);
      if (body_.has_more(!chunk.patches.empty()))
        body_.items(chunk.patches, 10, [this](auto& patch) {
          visit_piece(patch.piece);
          member(",", patch.units);
          body_.literal("]");
        });
      body_.literal("]");
    });
    body_.literal("}");
  }
  /// Without the end of its list.
  template <class Piece>
  void visit_piece(Piece& piece) {
    member("[", piece.file);
    member(",", piece.offset);
    member(",", piece.checksum);
  }

  Body body_;
};

/// Checks that what a manifest says can be: names are unique, and all pieces lie within the data files.
class manifest_check {
 public:
  manifest_check(const manifest& whole, const std::string& path) : whole_(whole), path_(path) {}

  void run() {
    check_files();
    for (const auto& file : whole_.files)
      room_ = file.bytes > most_bytes - room_ ? most_bytes : room_ + file.bytes;
    for (const auto& entry : whole_.entries) {
      require_unique(entry.facts, "facts");
      for (const auto& array : entry.arrays) check_array(array);
      require_unique(entry.arrays, "arrays");
    }
    require_unique(whole_.entries, "entries");
  }

 private:
  static constexpr std::uint64_t most_bytes = std::numeric_limits<std::int64_t>::max();

  [[noreturn]] void fail(const std::string& problem) const { refuse_manifest(path_, problem); }
  template <class Named>
  void require_unique(const std::vector<Named>& list, const char* kind) const {
    std::vector<std::string_view> names;
    names.reserve(list.size());
    for (const auto& item : list) names.push_back(item.name);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
      fail(joined("two of its ", kind, " are named '", *twice, "'"));
  }

  void check_files() const {
    std::uint64_t before = 0;
    for (const auto& file : whole_.files) {
      if (file.number <= before || file.number > whole_.number)
        fail(joined("data file ", file.number, " is out of order"));
      if (file.bytes < data_header_bytes || file.bytes > most_bytes)
        fail(joined("data file ", file.number, " can't have ", file.bytes, " bytes"));
      before = file.number;
    }
  }

  void check_array(const manifest_array& array) {
    const std::string name = "array '" + array.name + "'";
    if (array.element_bytes == 0 || array.element_bytes > largest_chunk || array.extents.size() > max_rank)
      fail(joined(name, " has elements of ", array.element_bytes, " bytes and rank ", array.extents.size()));
    std::uint64_t bytes = array.element_bytes;
    bool empty = false;
    for (const auto extent : array.extents) {
      empty = empty || extent == 0;
      if (extent != 0 && bytes > most_bytes / extent) fail(name + " has too many bytes");
      bytes *= extent == 0 ? 1 : extent;
    }
    if (empty) bytes = 0;
    // No two chunks share bytes, so an array that is longer than the files is a lie about its memory.
    if (bytes > room_) fail(joined(name, " has ", bytes, " bytes, more than all data files"));
    room_ -= bytes;
    if (array.unit_bytes == 0 || array.unit_bytes % array.element_bytes != 0 || array.chunk_bytes == 0 ||
        array.chunk_bytes > largest_chunk || array.chunk_bytes % array.unit_bytes != 0)
      fail(joined(name, " has chunks of ", array.chunk_bytes, " bytes and units of ", array.unit_bytes));
    if (array.chunks.size() != array.chunk_count())
      fail(joined(name, " has ", array.chunks.size(), " chunks instead of ", array.chunk_count()));
    for (std::size_t index = 0; index < array.chunks.size(); ++index) {
      require_within(array.chunks[index].piece, array.bytes_of_chunk(index));
      for (const auto& patch : array.chunks[index].patches) {
        if (patch.units == 0 || patch.units > array.chunk_bytes / array.unit_bytes)
          fail(joined("a patch of ", name, " has ", patch.units, " units"));
        require_within(patch.piece, patch.units * (sizeof(std::uint32_t) + std::uint64_t{array.unit_bytes}));
      }
    }
  }
  void require_within(const manifest_piece& piece, std::uint64_t bytes) const {
    if (piece.file >= whole_.files.size()) fail(joined("a piece lies in file ", piece.file, " of its list"));
    const manifest_file& file = whole_.files[piece.file];
    if (piece.offset < data_header_bytes || piece.offset > file.bytes || bytes > file.bytes - piece.offset)
      fail(joined(bytes, " bytes at byte ", piece.offset, " do not lie in data file ", file.number,
                  ", which has ", file.bytes, " bytes"));
  }

  const manifest& whole_;
  const std::string& path_;
  std::uint64_t room_ = 0;  ///< bytes of the data files that no array has taken
};

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

constexpr std::size_t frame_bytes = manifest_header_bytes + sizeof(std::uint32_t);

void read_body(std::string_view bytes, const std::string& path, manifest& content) {
  const std::string_view body = bytes.substr(manifest_header_bytes, bytes.size() - frame_bytes);
  body_format(body_reader(body, path)).visit(content);
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
  constexpr std::size_t most_at_once = std::size_t{1} << 30;          // ISA-L counts bytes by an int
  auto* next = static_cast<unsigned char*>(const_cast<void*>(data));  // which it only reads
  std::uint32_t remainder = ~before;
  while (bytes != 0) {
    const std::size_t count = std::min(bytes, most_at_once);
    remainder = crc32_iscsi(next, static_cast<int>(count), remainder);
    next += count;
    bytes -= count;
  }
  return ~remainder;
}

std::uint64_t manifest_array::bytes() const {
  std::uint64_t product = element_bytes;
  for (const auto extent : extents) product *= extent;
  return product;
}

std::uint64_t manifest_array::bytes_of_chunk(std::size_t chunk) const {
  const std::uint64_t begin = chunk * chunk_bytes;
  return begin + chunk_bytes < bytes() ? chunk_bytes : bytes() - begin;
}

std::string manifest_array::describe() const {
  std::string text = dtype + (dtype == "struct" ? " of " + std::to_string(element_bytes) + " bytes [" : " [");
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
  return text + "]";
}

std::string manifest_fact::describe() const {
  if (kind == text) return "'" + words + "'";
  std::string list;
  for (const auto bits : numbers) {
    std::array<char, 32> digits{};
    std::string number;
    if (kind == real) {
      // The shortest of these that gives the number back.
      for (int precision = 6; precision <= 17; ++precision) {
        std::snprintf(digits.data(), digits.size(), "%.*g", precision, std::bit_cast<double>(bits));
        if (std::bit_cast<std::uint64_t>(std::strtod(digits.data(), nullptr)) == bits) break;
      }
      number = digits.data();
    } else {
      number = kind == whole ? std::to_string(static_cast<std::int64_t>(bits)) : std::to_string(bits);
    }
    list += (list.empty() ? "" : ", ") + number;
  }
  return numbers.size() == 1 ? list : "(" + list + ")";
}

std::string encode(const manifest& content) {
  std::string body;
  body_format(body_writer(body)).visit(content);
  std::string bytes(manifest_magic);
  append_number(bytes, manifest::version);
  append_number(bytes, std::uint32_t{0});
  append_number(bytes, content.number);
  append_number(bytes, static_cast<std::uint64_t>(body.size()));
  bytes += body;
  append_number(bytes, crc32c(bytes.data(), bytes.size()));
  return bytes;
}

manifest decode(std::string_view bytes, const std::string& path) {
  const auto fail = [&](const std::string& problem) { refuse_manifest(path, problem); };
  if (!bytes.starts_with(manifest_magic)) fail(joined("it does not begin with '", manifest_magic, "'"));
  if (bytes.size() < 12) fail("it ends within the version");
  const auto version = number_at<std::uint32_t>(bytes, 8);
  if (version != manifest::version)
    throw_io_error(
        "checkpoint", path,
        joined("it has format version ", version, ", and this ferry reads version ", manifest::version,
               (version > manifest::version ? ": a newer ferry wrote it" : "")));
  if (bytes.size() < frame_bytes) fail("it ends within its header");
  if (number_at<std::uint32_t>(bytes, 12) != 0) fail("its reserved field is not zero");
  const auto body = number_at<std::uint64_t>(bytes, 24);
  if (body != bytes.size() - frame_bytes)
    fail(joined("its body should have ", body, " bytes, but the file has ", bytes.size(), " bytes, ",
                frame_bytes, " of them around the body"));
  const std::size_t end = bytes.size() - sizeof(std::uint32_t);
  const auto stored = number_at<std::uint32_t>(bytes, end);
  if (const auto checksum = crc32c(bytes.data(), end); checksum != stored)
    fail(joined("it is damaged: its checksum is ", stored, ", that of its bytes ", checksum));
  manifest content;
  content.number = number_at<std::uint64_t>(bytes, 16);
  read_body(bytes, path, content);
  manifest_check(content, path).run();
  return content;
}

bool is_manifest(std::string_view bytes) {
  const bool has_frame =
      bytes.size() >= frame_bytes && number_at<std::uint64_t>(bytes, 24) == bytes.size() - frame_bytes;
  return has_frame || bytes.starts_with(manifest_magic);
}

std::uint64_t last_data_file(std::string_view bytes) {
  if (bytes.size() < 24) return std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = number_at<std::uint64_t>(bytes, 16);
  manifest content;
  try {
    if (bytes.size() >= frame_bytes) read_body(bytes, {}, content);
  } catch (const io_error&) {  // what comes before the damage has been read
  }
  for (const auto& file : content.files) last = std::max(last, file.number);
  return last;
}

}  // namespace ferry::detail
