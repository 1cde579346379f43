// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/allocation_progress.hpp>

#include "thread_observer.hpp"

namespace ferry::detail {

template class thread_observer<progress>;
template class report_meter<progress>;

}  // namespace ferry::detail
