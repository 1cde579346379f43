#include "prebuilt.hpp"

FERRY_STEPS(float, sgd)
FERRY_STATES(sgd)
