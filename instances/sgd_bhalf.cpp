#include "prebuilt.hpp"

FERRY_STEPS(bhalf_t, sgd)
