// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

// Nearly every header includes this one first, so the sentence comes before the errors that follow from it.
#if defined(__cplusplus) && __cplusplus < 202002L && !defined(_MSVC_LANG)
#error "ferry: needs C++20; compile with -std=c++20 or a later standard."
#endif
#if !defined(__cpp_exceptions)
#error "ferry: reports errors by exceptions; compile without -fno-exceptions."
#endif
#if !defined(__cpp_rtti)
#error "ferry: compares types at run time, across libraries of a process; compile without -fno-rtti."
#endif
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000
#error "ferry: needs std::atomic_ref and from_chars of doubles, which libc++ lacks before 20; use libstdc++."
#endif

/// Default visibility, for objects that exist once in a process. A library compiled with -fvisibility=hidden,
/// such as a Python extension module, would otherwise get a copy of its own.
#if defined(__GNUC__)
#define FERRY_SHARED __attribute__((visibility("default")))
#else
#define FERRY_SHARED
#endif

/// The library's namespace. Errors that ferry finds derive from ferry::error; those of the standard library
/// (std::bad_alloc) and of the caller's functions pass through. A verb checks what the host can see and
/// throws before it launches anything. ticket::wait() throws what only the kernels can find.
namespace ferry {

namespace detail {

// Macros of the standard library that change the layout of containers and strings, which the library returns.
#if defined(_GLIBCXX_DEBUG)
#define FERRY_SAME_CONTAINERS compile_the_library_of_ferry_with_GLIBCXX_DEBUG_because_this_program_has_it
#else
#define FERRY_SAME_CONTAINERS compile_the_library_of_ferry_without_GLIBCXX_DEBUG_because_this_program_lacks_it
#endif
#if !defined(_GLIBCXX_USE_CXX11_ABI) || _GLIBCXX_USE_CXX11_ABI
#define FERRY_SAME_STRINGS \
  compile_the_library_of_ferry_with_GLIBCXX_USE_CXX11_ABI_1_because_this_program_has_it
#else
#define FERRY_SAME_STRINGS \
  compile_the_library_of_ferry_with_GLIBCXX_USE_CXX11_ABI_0_because_this_program_has_it
#endif

/// A program that includes ferry and lacks its library, or has one with other containers, fails to link: for
/// want of an object whose name says why.
extern const char the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp;
extern const char FERRY_SAME_CONTAINERS;
extern const char FERRY_SAME_STRINGS;
[[gnu::used, gnu::retain]] const char* const library[] = {
    &the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp, &FERRY_SAME_CONTAINERS,
    &FERRY_SAME_STRINGS};

/// A text or a number as a piece of a message.
class text_piece {
 public:
  text_piece(const char* text) noexcept : text_(text) {}
  text_piece(std::string_view text) noexcept : text_(text) {}
  text_piece(const std::string& text) noexcept : text_(text) {}
  text_piece(std::floating_point auto number) noexcept
      : real_(static_cast<double>(number)), kind_(kind::real) {}
  text_piece(std::unsigned_integral auto number) noexcept : number_(number), kind_(kind::natural) {}
  text_piece(std::signed_integral auto number) noexcept
      : number_(static_cast<unsigned long long>(number)), kind_(kind::integer) {}

  /// The first `count` pieces, one after the other.
  [[gnu::cold]] [[nodiscard]] static std::string join(const text_piece* pieces, std::size_t count);

 private:
  enum class kind : unsigned char { text, real, natural, integer };

  std::string_view text_;
  unsigned long long number_ = 0;
  double real_ = 0;
  kind kind_ = kind::text;
};

/// A message of pieces; numbers as std::to_string writes them. A chain of additions of strings does the same,
/// with several times the code, of which GCC 12 warns at -O3.
template <class... Pieces>
[[gnu::cold]] [[nodiscard]] std::string joined(const Pieces&... pieces) {
  const text_piece list[] = {text_piece(pieces)...};  // nvcc spoils a braced list among arguments
  return text_piece::join(list, sizeof...(Pieces));
}

/// A number and its noun: "1 bag", "2 bags".
[[gnu::cold]] [[nodiscard]] std::string counted(const text_piece& number, std::string_view singular,
                                                std::string_view plural);

}  // namespace detail

/// Base of all exceptions of ferry. what() names the verb, the arrays' labels and extents, and the offending
/// values.
class FERRY_SHARED error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes, strides, policies or pointers that do not fit together.
class FERRY_SHARED invalid_argument : public error {
 public:
  using error::error;
};

/// A row index or row range outside of its table.
class FERRY_SHARED out_of_range : public error {
 public:
  using error::error;
};

/// An allocation that failed; names the space, the label and the size in bytes.
class FERRY_SHARED bad_alloc : public error {
 public:
  using error::error;
};

/// A failed call into the device's runtime.
class FERRY_SHARED device_error : public error {
 public:
  using error::error;
};

/// An allocation that would exceed a budget set by ferry::set_memory_budget.
class FERRY_SHARED budget_exceeded : public bad_alloc {
 public:
  using bad_alloc::bad_alloc;
};

/// A file that could not be read or written, or whose contents are not valid.
class FERRY_SHARED io_error : public error {
 public:
  using error::error;
};

/// A file or a checkpoint that does not exist, as in the first run of a program.
class FERRY_SHARED not_found : public io_error {
 public:
  using io_error::io_error;
};

}  // namespace ferry
