// SPDX-License-Identifier: Apache-2.0
// All of the standard library comes first, so a function of ferry that argument-dependent lookup confuses with one of
// the standard's does not compile.
#if __has_include(<bits/stdc++.h>)
#include <bits/stdc++.h>
#endif

#include <ferry/ferry.hpp>

int main() { return 0; }
