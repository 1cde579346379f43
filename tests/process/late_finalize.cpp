#include "check.hpp"

#include <ferry/ferry.hpp>

#include <cstdlib>

/// Kokkos::finalize at exit, after the destructors of all statics that were made later than its registration: what lives
/// until finalize must not be one of them. AddressSanitizer sees it if it is.
int main() {
  using exec_space = Kokkos::DefaultHostExecutionSpace;
  Kokkos::initialize();
  std::atexit([] { Kokkos::finalize(); });
  ferry::machine_profile profile;
  profile.call_us = 3.25;
  ferry::use_profile(exec_space{}, profile);
  FERRY_TEST_CHECK(ferry::current_profile(exec_space{}) == profile);
  return failures == 0 ? 0 : 1;
}
