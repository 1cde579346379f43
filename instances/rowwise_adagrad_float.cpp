#include "prebuilt.hpp"

FERRY_STEPS(float, rowwise_adagrad)
