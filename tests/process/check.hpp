// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

/// For programs of a few lines that end by themselves: says what did not hold, and counts it.
inline int failures = 0;

#define FERRY_TEST_CHECK(...)                                                     \
  do {                                                                            \
    if (!(__VA_ARGS__)) {                                                         \
      std::printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #__VA_ARGS__); \
      ++failures;                                                                 \
    }                                                                             \
  } while (false)
