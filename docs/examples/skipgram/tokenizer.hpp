// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace skipgram {

/// Receives what tokenize() finds, in the order of the text.
class token_sink {
 public:
  virtual ~token_sink() = default;
  virtual void word(std::string_view) = 0;
  virtual void end_sentence() = 0;
  virtual void invalid_byte() = 0;
};

/// Splits UTF-8 into words: runs of ASCII letters (lower-cased), digits and all other letters of Unicode as
/// they are; an apostrophe counts between letters ("don't"). Bytes that are no UTF-8 separate words, as do
/// spaces and punctuation.
void tokenize(std::string_view text, token_sink& sink);

}  // namespace skipgram
