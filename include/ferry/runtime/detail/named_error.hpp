// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <memory>
#include <string>

namespace ferry::detail {

/// Returns take(). Adds the name of the verb to its bad_alloc or budget_exceeded.
template <class Take>
std::shared_ptr<void> with_verb_in_error(const char* verb, const Take& take) {
  const auto with_verb = [verb](const error& failed) {
    return std::string("ferry::") + verb + ": " + failed.what();
  };
  try {
    return take();
  } catch (const budget_exceeded& failed) {
    throw budget_exceeded(with_verb(failed));
  } catch (const bad_alloc& failed) {
    throw bad_alloc(with_verb(failed));
  }
}

}  // namespace ferry::detail
