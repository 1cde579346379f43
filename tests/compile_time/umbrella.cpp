#include <ferry/ferry.hpp>
