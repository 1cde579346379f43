// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Parts that a note does not show, and that messages name if they differ.
enum class note_part : std::size_t { types, state, options, values, content };
inline constexpr std::size_t note_parts = 5;

/// An option of a rule or of a transform, for messages. A long name is cut.
struct shown_option {
  std::array<char, 40> name{};  ///< ends with a zero; empty if ferry does not know it
  double value = 0;
};

/// The call of a rank: the verb, the table's label and number, and all arguments that must agree between the
/// ranks. Of fixed size, so that a transport sends it along and a rank that is out of memory can still say
/// what it called. A long text is cut; the digest covers all of it.
struct call_note {
  static constexpr std::size_t room = 104;
  static constexpr std::uint64_t basis = 14695981039346656037ull;

  std::array<char, room> text{};
  std::uint64_t digest = basis;
  std::uint64_t length = 0;
  std::array<std::uint64_t, note_parts> hidden{};  ///< digests of what the text does not show
  static constexpr std::size_t most_options = 12;
  std::array<shown_option, most_options> options{};  ///< the first ones of the rule and its transforms
  std::uint64_t option_count = 0;

  call_note() = default;
  explicit call_note(std::string_view words) { add(words); }

  /// Appends words. FNV-1a.
  call_note& add(std::string_view words);
  template <class Number>
  call_note& add_number(Number number) {
    return add(joined(" ", number));
  }
  /// A number that the text does not show, of a type without padding.
  template <class Number>
  call_note& add_hidden(note_part part, const Number& number) {
    return add_hidden_bytes(part, &number, sizeof number);
  }
  call_note& add_hidden_bytes(note_part part, const void* data, std::size_t bytes);

  /// Keeps an option for messages, with the parts of its name. Those after the first most_options are in the
  /// digest alone.
  void show_option(double value, std::initializer_list<std::string_view> name);

  [[nodiscard]] std::string_view words() const {
    return {text.data(), static_cast<std::size_t>(std::min<std::uint64_t>(length, room))};
  }
  /// One number for all that equal notes have in common.
  [[nodiscard]] std::uint64_t digest_of_all() const;
  /// True if both are the same call as the text tells it. A rank that refuses its arguments may differ in the
  /// rest.
  [[nodiscard]] bool reads_like(const call_note& note) const;
  friend bool operator==(const call_note& a, const call_note& b) {
    return a.reads_like(b) && a.hidden == b.hidden;
  }
};

/// The message of a failing rank, of fixed size.
struct failure_text {
  std::array<char, 400> text{};

  void set(std::string_view message);
  [[nodiscard]] const char* c_str() const { return text.data(); }
};

enum class call_kind : std::uint32_t { all_gather, exchange, failure, abort, late };

/// The words of a rank at the beginning of every call, which are equal on all ranks if all is well.
struct call_brief {
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t call = 0;    ///< number of the call
  std::uint64_t digest = 0;  ///< of the note
  std::uint64_t bytes = 0;   ///< of each rank in an all_gather
  /// The bytes of an all_gather, if they fit: most of those of verbs do.
  static constexpr std::size_t room = 1024;
  std::array<std::byte, room> data{};
};

/// The full words of a rank, which ranks exchange if their brief ones differ, and with which a rank leaves.
struct call_header {
  call_note note;
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
  failure_text said;
};

}  // namespace ferry::detail
