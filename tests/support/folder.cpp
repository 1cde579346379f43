// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace ferry_test {

temporary_folder::temporary_folder()
    : path_((std::filesystem::temp_directory_path() / ("ferry_test_" + std::string(6, 'X'))).string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string tests_folder() { return FERRY_TESTS_FOLDER; }

int entries_of(const std::string& path) {
  std::error_code failed;
  int count = 0;
  for (std::filesystem::directory_iterator entry(path, failed);
       !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed))
    ++count;
  return count;
}

environment_variable::environment_variable(const char* name, const char* value) : name_(name) {
  if (const char* old = std::getenv(name)) {
    was_set_ = true;
    before_ = old;
  }
  set(value);
}

environment_variable::~environment_variable() { set(was_set_ ? before_.c_str() : nullptr); }

void environment_variable::set(const char* value) const {
  if (value == nullptr)
    ::unsetenv(name_);
  else
    ::setenv(name_, value, 1);
}

}  // namespace ferry_test
