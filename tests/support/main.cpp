// SPDX-License-Identifier: Apache-2.0
#include <Kokkos_Core.hpp>

#include <catch2/catch_session.hpp>

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  return Catch::Session().run(argc, argv);
}
