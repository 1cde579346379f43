// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_listeners.hpp>

#if defined(FERRY_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

namespace ferry::cuda {

/// Ranges for Nsight and other tools that listen to NVTX, in programs that are compiled with FERRY_NVTX. The
/// header is not included otherwise.
struct annotation_functions {
#if defined(FERRY_NVTX)
 private:
  static bool install() {
    static const detail::range_annotator nvtx{[](const char* name) { nvtxRangePushA(name); },
                                              [] { nvtxRangePop(); }};
    detail::annotate_by(&nvtx);
    return true;
  }
  static inline const bool installed = install();
#endif
};

}  // namespace ferry::cuda
