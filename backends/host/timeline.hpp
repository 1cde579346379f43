// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::host {

/// Kernels run in the calling thread, which takes their times itself: no start_timer, no stop_timer.
struct timeline_functions {};

}  // namespace ferry::host
