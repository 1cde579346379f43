#include "prebuilt.hpp"

FERRY_STEPS(float, adagrad)
FERRY_STATES(adagrad)
