// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// No profiler of the host takes ranges from here.
struct annotation_functions {};

}  // namespace ferry::host
