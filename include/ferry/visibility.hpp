#pragma once

/// For what a whole process has once: a library that is compiled with -fvisibility=hidden, as extension modules of Python
/// are, would otherwise have its own.
#if defined(__GNUC__)
#define FERRY_SHARED __attribute__((visibility("default")))
#else
#define FERRY_SHARED
#endif
