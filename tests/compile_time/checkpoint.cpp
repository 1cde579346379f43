// SPDX-License-Identifier: Apache-2.0
#include <ferry/io.hpp>

void save_and_load(const std::string& folder, ferry::tensor<float, ferry::mapped_space>& table, bool resume) {
  ferry::io::checkpoint run(folder);
  run.add("weights", table);
  if (resume)
    run.load();
  else
    run.save();
}
