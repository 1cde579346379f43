#include "prebuilt.hpp"

FERRY_ROWS(bhalf_t)
