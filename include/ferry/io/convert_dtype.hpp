// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::io {

/// Passed to a load: numbers of another type than the file's are converted, as ferry::copy does. Without it
/// such a load throws invalid_argument.
struct convert_dtype {};

}  // namespace ferry::io
