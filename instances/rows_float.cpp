#include "prebuilt.hpp"

FERRY_ROWS(float)
