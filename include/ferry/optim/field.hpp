#pragma once

namespace ferry::optim {

/// One array of an optimizer's state, shaped like the table: torch.optim's name for it, the value it starts
/// with, and whether these options use it at all.
struct field {
  const char* name;
  double initial = 0.0;
  bool active = true;
};

}  // namespace ferry::optim
