#include "prebuilt.hpp"

FERRY_STEPS(float, sgd)
