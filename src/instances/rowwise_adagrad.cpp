// SPDX-License-Identifier: Apache-2.0
#include "prebuilt.hpp"

FERRY_STEPS(rowwise_adagrad)
