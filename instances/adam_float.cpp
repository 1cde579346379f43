#include "prebuilt.hpp"

FERRY_STEPS(float, adam)
