// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/arrays.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"
#include "support/said.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// The includes of nearly every test: the library, Catch2, the standard library, arrays and random numbers.
namespace ferry_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

}  // namespace ferry_test
