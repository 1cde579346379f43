// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed.hpp>

namespace ferry_test {

/// Tables in device memory over processes, path::peer between these, and tensors that they share. On every
/// machine by a space that stands for a device's; in device_space where there is a device.
void device_tables(const ferry::communicator& comm);

}  // namespace ferry_test
