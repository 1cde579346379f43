// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/error.hpp>

namespace ferry {

/// A rank of a communicator did not come to a collective call: within the deadline, or because it has left or
/// its process has ended. The message says which rank reached which call. The group is then broken: every
/// later call on it throws this error at once.
class FERRY_SHARED communication_error : public error {
 public:
  using error::error;
};

/// The ranks of a communicator called different verbs, or one verb with arguments that must agree and do not.
/// Thrown on all ranks; the group is then broken.
class FERRY_SHARED protocol_error : public communication_error {
 public:
  using communication_error::communication_error;
};

/// Another rank of the communicator failed. The message names the rank and gives what it said; that rank
/// throws its own error.
class FERRY_SHARED peer_error : public error {
 public:
  using error::error;
};

}  // namespace ferry
