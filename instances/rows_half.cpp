#include "prebuilt.hpp"

FERRY_ROWS(half_t)
