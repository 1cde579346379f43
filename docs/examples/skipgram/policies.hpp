// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dispatch.hpp"

#include <ferry/memory/spaces.hpp>
#include <ferry/optim/rules/adagrad.hpp>
#include <ferry/optim/rules/adam.hpp>
#include <ferry/optim/rules/sgd.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/tensor/half.hpp>

#include <string>
#include <type_traits>

/// The policies that the command line can name: the only place that lists them.
namespace skipgram {

inline constexpr auto spaces =
    hana::make_tuple(entry<ferry::device_space>{"device"}, entry<ferry::pinned_space>{"pinned"},
                     entry<ferry::mapped_space>{"mapped"}, entry<ferry::pageable_space>{"pageable"});

inline constexpr auto paths =
    hana::make_tuple(entry<ferry::path::automatic>{"automatic"}, entry<ferry::path::direct>{"direct"},
                     entry<ferry::path::staged>{"staged"});

inline constexpr auto optimizers =
    hana::make_tuple(entry<ferry::optim::sgd>{"sgd"}, entry<ferry::optim::adagrad>{"adagrad"},
                     entry<ferry::optim::adam>{"adam"});

inline constexpr auto dtypes = hana::make_tuple(entry<float>{"float"}, entry<ferry::half_t>{"half"});

/// True if rows can travel by Path between a table in Space and batches in device_space. The library would
/// refuse to compile the others; here the same property decides what is compiled at all.
template <class Space, class Path>
inline constexpr bool is_supported = !std::is_same_v<Path, ferry::path::staged> || Space::is_host_accessible;

/// Such a check of names. Throws std::invalid_argument if they do not fit.
inline void require_supported(const std::string& space, const std::string& path) {
  const bool supported = dispatch<bool>(
      [](auto space_tag, auto how) {
        return is_supported<typename decltype(space_tag)::type, typename decltype(how)::type>;
      },
      choice{spaces, space}, choice{paths, path});
  if (!supported)
    throw std::invalid_argument(
        "--path " + path + " does not go with --space " + space +
        ": staged rows travel through host memory, but table and batches both live on the "
        "device; use --path direct or another space");
}

}  // namespace skipgram
