// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

int main(int argc, char** argv) {
  return skipgram::run_program(argc, argv, false, true, [](const auto& chosen, const auto& text) {
    skipgram::train(skipgram::execution(), chosen, text);
  });
}
