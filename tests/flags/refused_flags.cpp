// SPDX-License-Identifier: Apache-2.0
// Does not compile with a flag that error.hpp refuses.
#include <ferry/error.hpp>
