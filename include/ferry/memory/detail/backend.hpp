#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry {

/// The backend that provides the four memory spaces; ferry.hpp defines it. Always named through a template
/// parameter
/// (`device_backend<Space>`), so that headers which only pass it on need no backend. backends/README.md lists
/// what a backend must have.
template <class Dependent>
struct device_backend;

/// What a backend hands out for one request.
struct memory_block {
  void* data = nullptr;
  std::size_t bytes = 0;
  /// Backend's own note of how the block was made; handed back on release.
  int provenance = 0;
  /// Backend's own note of where the pages were asked to be; 0 where the system decides.
  int placement = 0;
};

}  // namespace ferry
