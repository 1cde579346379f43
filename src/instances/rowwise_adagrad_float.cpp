// SPDX-License-Identifier: Apache-2.0
#include "prebuilt.hpp"

FERRY_STEPS(float, rowwise_adagrad)
FERRY_STATES(rowwise_adagrad)
