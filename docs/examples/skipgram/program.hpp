// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "corpus.hpp"
#include "options.hpp"
#include "rank_group.hpp"

#include <functional>

namespace skipgram {

/// Parses the command line, initialises Kokkos, reads the text and calls `work`; reports what goes wrong.
/// Gives the exit status. The program over ranks has the option --ranks and may speak for one process alone.
int run_program(int argc, char** argv, bool over_ranks, bool speaks,
                const std::function<void(const options&, const corpus&)>& work);

/// Trains and prints. Each rank of a group calls it.
void train(const execution& exec, const options& chosen, const corpus& text,
           const rank_group* ranks = nullptr);

}  // namespace skipgram
