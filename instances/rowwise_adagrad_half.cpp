#include "prebuilt.hpp"

FERRY_STEPS(half_t, rowwise_adagrad)
