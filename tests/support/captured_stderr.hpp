// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace ferry_test {

/// The text that is written to stderr while it lives.
class captured_stderr {
 public:
  captured_stderr() : file_(std::tmpfile()), saved_(::dup(STDERR_FILENO)) {
    std::fflush(stderr);
    ::dup2(fileno(file_), STDERR_FILENO);
  }
  captured_stderr(const captured_stderr&) = delete;
  captured_stderr& operator=(const captured_stderr&) = delete;
  ~captured_stderr() {
    if (saved_ >= 0) restore();
    std::fclose(file_);
  }
  std::string text() {
    restore();
    std::string read(1 << 16, '\0');
    std::rewind(file_);
    read.resize(std::fread(read.data(), 1, read.size(), file_));
    return read;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    std::fflush(stderr);
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    saved_ = -1;
  }
  std::FILE* file_;
  int saved_;
};

/// How often a text contains a part.
inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t position = text.find(part); position != std::string::npos;
       position = text.find(part, position + 1))
    ++count;
  return count;
}

}  // namespace ferry_test
