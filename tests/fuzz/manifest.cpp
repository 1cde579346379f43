// SPDX-License-Identifier: Apache-2.0
#include "fuzz/manifest_case.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// libFuzzer's target for the manifests of checkpoints:
///
///   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Itests tests/fuzz/manifest.cpp
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  bool accepted = false;
  for (int sealed = 0; sealed < 2; ++sealed) {
    const std::string fault = ferry_test::fault_of_manifest(bytes, accepted);
    if (!fault.empty()) {
      std::fprintf(stderr, "%s\n", fault.c_str());
      std::abort();
    }
    ferry_test::seal_manifest(bytes);
  }
  return 0;
}
