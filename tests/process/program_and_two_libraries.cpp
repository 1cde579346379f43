// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "opened_library.hpp"

#include <ferry/ferry.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

/// A program over ferry opens two libraries over ferry, and closes them before Kokkos ends: all three share
/// statistics, budgets, the engine, the profile, observers and the types of errors.
namespace {

using ferry::pageable_space;
using exec_space = Kokkos::DefaultHostExecutionSpace;

std::uint64_t moves() {
  std::uint64_t sum = 0;
  for (const auto& count : ferry::transfer_statistics()) sum += count.calls;
  return sum;
}

void check(const library_functions& first, const library_functions& two) {
  const std::size_t before = ferry::memory_statistics<pageable_space>().current;
  const ferry::tensor<char, pageable_space> table("of the program", 1000);
  std::string labels;
  {
    const ferry::allocation_progress watch([&labels](const ferry::progress& p) { labels += p.label; });
    first.hold("of one", 36096);
    two.hold("of two", 64000);
  }
  FERRY_TEST_CHECK(labels == "ferry::tensor::of oneferry::tensor::of two");
  const std::size_t total = ferry::memory_statistics<pageable_space>().current;
  FERRY_TEST_CHECK(total >= before + 1000 + 36096 + 64000);
  FERRY_TEST_CHECK(first.bytes() == total && two.bytes() == total);
  FERRY_TEST_CHECK(first.bytes_of("of two") == 64000 && two.bytes_of("of one") == 36096);
  FERRY_TEST_CHECK(first.bytes_of("of the program") != 0 && two.bytes_of("of the program") != 0);

  two.set_budget(total + 1000);
  FERRY_TEST_CHECK(ferry::memory_statistics<pageable_space>().budget == total + 1000);
  FERRY_TEST_CHECK(!first.fits(1001));
  FERRY_TEST_CHECK(first.fits(1000));
  ferry::set_memory_budget<pageable_space>(0);
  FERRY_TEST_CHECK(first.fits(1001) && two.fits(1001));

  const void* engine = ferry::detail::engine::get_on<exec_space>().get();
  FERRY_TEST_CHECK(first.engine() == engine && two.engine() == engine);
  first.set_call_us(3.25);
  FERRY_TEST_CHECK(ferry::current_profile(exec_space{}).call_us == 3.25 && two.call_us() == 3.25);

  const std::uint64_t moved = moves();
  first.gather();
  two.gather();
  FERRY_TEST_CHECK(moves() == moved + 2 && first.moves() == moved + 2 && two.moves() == moved + 2);

  for (const auto* library : {&first, &two}) {
    std::string message;
    try {
      library->refuse();
    } catch (const ferry::invalid_argument& error) {
      message = error.what();
    }
    FERRY_TEST_CHECK(message.find("'three'") != std::string::npos);
  }
  first.release();
  two.release();
  FERRY_TEST_CHECK(ferry::memory_by_label<pageable_space>().empty() || first.bytes_of("of one") == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const opened_library first(argv[1]), two(argv[2]);
  if (first.functions == nullptr || two.functions == nullptr || first.functions == two.functions) return 2;
  check(*first.functions, *two.functions);
  return failures == 0 ? 0 : 1;
}
