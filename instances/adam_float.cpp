#include "prebuilt.hpp"

FERRY_STEPS(float, adam)
FERRY_STATES(adam)
