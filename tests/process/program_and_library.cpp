// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "library.hpp"

#include <ferry/ferry.hpp>

#include <cstddef>
#include <string>

/// A program over ferry and a library over ferry share statistics, budgets, the engine, the profile, observers and the
/// types of errors.
int main(int argc, char** argv) {
  using ferry::pageable_space;
  using exec_space = Kokkos::DefaultHostExecutionSpace;
  Kokkos::ScopeGuard kokkos(argc, argv);
  const library_functions& library = *ferry_test_library();
  library.start();
  const std::size_t before = ferry::memory_statistics<pageable_space>().current;
  const ferry::tensor<char, pageable_space> array("own", 36096);
  std::string text;
  {
    const ferry::allocation_progress watch([&text](const ferry::progress& p) { text += p.label; });
    library.hold("of the library", 64000);
  }
  FERRY_TEST_CHECK(text == "ferry::tensor::of the library");
  FERRY_TEST_CHECK(ferry::memory_statistics<pageable_space>().current == before + 36096 + 64000);
  FERRY_TEST_CHECK(library.bytes() == before + 36096 + 64000);
  FERRY_TEST_CHECK(library.bytes_of("own") == 36096);
  library.set_budget(library.bytes() + 1000);
  FERRY_TEST_CHECK(ferry::memory_statistics<pageable_space>().budget == library.bytes() + 1000);
  bool refused = false;
  try {
    const ferry::tensor<char, pageable_space> more("more", 1001);
  } catch (const ferry::budget_exceeded&) {
    refused = true;
  }
  FERRY_TEST_CHECK(refused);
  ferry::set_memory_budget<pageable_space>(0);
  FERRY_TEST_CHECK(library.fits(1001));
  FERRY_TEST_CHECK(library.engine() == ferry::detail::engine::get_on<exec_space>().get());
  library.set_call_us(3.25);
  FERRY_TEST_CHECK(ferry::current_profile(exec_space{}).call_us == 3.25);
  std::string message;
  try {
    library.refuse();
  } catch (const ferry::invalid_argument& error) {
    message = error.what();
  }
  FERRY_TEST_CHECK(message.find("'three'") != std::string::npos);
  library.release();
  return failures == 0 ? 0 : 1;
}
