#include "prebuilt.hpp"

FERRY_STEPS(half_t, adam)
