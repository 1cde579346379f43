// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ferry_test {

/// The message of the exception that `act` throws, which must be an Error; empty where there is none.
template <class Error, class Act>
std::string said(const Act& act) {
  try {
    act();
  } catch (const Error& caught) {
    return caught.what();
  }
  return {};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ferry_test
