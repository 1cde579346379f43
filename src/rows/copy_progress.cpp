// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/copy_progress.hpp>

#include "../memory/thread_observer.hpp"

namespace ferry::detail {

template class thread_observer<copied>;
template class report_meter<copied>;

}  // namespace ferry::detail
