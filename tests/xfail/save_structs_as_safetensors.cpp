// SPDX-License-Identifier: Apache-2.0
// The safetensors format has no type for structs.
// expected-error: safetensors has types for bool, integers, .* save structs as .npy
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <vector>

struct particle {
  float x, y;
};

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const std::vector<float> particles(3);
#else
  const std::vector<particle> particles(3);
#endif
  ferry::io::save_safetensors("p.safetensors", {{"particles", particles}});
}
