// SPDX-License-Identifier: Apache-2.0
// The smallest program over ferry's headers: of macros that change containers the linker alone can tell.
#include <ferry/error.hpp>

int main() {}
