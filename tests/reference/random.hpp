// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// Philox4x32-10 after its paper, and what ferry makes of it, with the standard library's functions in
/// double.
namespace ferry_test::reference {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// Of the element at `position`, for `seed`.
double uniform_unit(std::uint64_t seed, std::uint64_t position);
double standard_normal(std::uint64_t seed, std::uint64_t position);

/// Of an element that is drawn as a float: a number of [-1, 1), and the quantile of a normal distribution.
double signed_unit(std::uint64_t seed, std::uint64_t position);
double normal_of_word(std::uint64_t seed, std::uint64_t position);
/// The quantile of the standard normal distribution at (place + 2^31) / 2^32, for an odd `place`, by
/// bisection of the C library's erfc.
double normal_quantile(std::int32_t place);

}  // namespace ferry_test::reference
