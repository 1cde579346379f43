// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library.hpp"

#include <dlfcn.h>

#include <cstdio>

/// A library over ferry, opened as Python opens its extension modules: its symbols serve no other library.
struct opened_library {
  explicit opened_library(const char* path) : handle(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr)
      std::printf("%s\n", ::dlerror());
    else
      functions = reinterpret_cast<const library_functions* (*)()>(::dlsym(handle, "ferry_test_library"))();
  }
  opened_library(const opened_library&) = delete;
  opened_library& operator=(const opened_library&) = delete;
  ~opened_library() {
    if (handle != nullptr) ::dlclose(handle);
  }

  void* handle;
  const library_functions* functions = nullptr;
};
