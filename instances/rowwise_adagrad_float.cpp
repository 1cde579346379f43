#include "prebuilt.hpp"

FERRY_STEPS(float, rowwise_adagrad)
FERRY_STATES(rowwise_adagrad)
