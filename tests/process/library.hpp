// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The functions of a shared library over ferry for programs that know nothing of ferry: all that it exports, for it is compiled
/// with -fvisibility=hidden.
struct library_functions {
  void (*start)();                         ///< Kokkos::initialize, unless that has been done
  void (*finish)();                        ///< Kokkos::finalize
  void (*hold)(const char*, std::size_t);  ///< a tensor of that size in pageable memory, until release()
  void (*release)();
  std::size_t (*bytes)();                ///< memory_statistics<pageable_space>().current
  std::size_t (*bytes_of)(const char*);  ///< of memory_by_label, by the tensor's name
  void (*set_budget)(std::size_t);
  std::size_t (*budget)();
  bool (*fits)(std::size_t);  ///< whether that many bytes more are within the budget
  double (*call_us)();        ///< of current_profile
  void (*set_call_us)(double);
  const void* (*engine)();  ///< where the engine lies
  void (*refuse)();         ///< throws ferry::invalid_argument
  void (*gather)();
  std::uint64_t (*moves)();  ///< calls of transfer_statistics
};

extern "C" __attribute__((visibility("default"))) const library_functions* ferry_test_library();
