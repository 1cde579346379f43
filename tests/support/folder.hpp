// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// Defined in folder.cpp, which includes <filesystem> for all of the tests.
namespace ferry_test {

/// A folder of the test's own, gone with its content at the end.
class temporary_folder {
 public:
  temporary_folder();
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The folder tests of this checkout. Not by __FILE__, which ccache may make relative.
std::string tests_folder();

/// Files and folders directly in the folder `path`; 0 where there is no such folder.
int entries_of(const std::string& path);

/// A variable of the environment, for the time of a test; null takes it away.
class environment_variable {
 public:
  environment_variable(const char* name, const char* value);
  ~environment_variable();
  environment_variable(const environment_variable&) = delete;
  environment_variable& operator=(const environment_variable&) = delete;
  void set(const char* value) const;

 private:
  const char* name_;
  bool was_set_ = false;
  std::string before_;
};

}  // namespace ferry_test
