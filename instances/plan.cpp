#include "prebuilt.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace ferry::detail {

FERRY_INSTANTIATE_PLAN(std::int32_t, device_space)
FERRY_INSTANTIATE_PLAN(std::int64_t, device_space)
FERRY_INSTANTIATE_PLAN(std::int32_t, pageable_space)
FERRY_INSTANTIATE_PLAN(std::int64_t, pageable_space)

}  // namespace ferry::detail

namespace ferry::optim::detail {

template tensor<float, device_space> prebuilt_filled(const std::string&, const std::array<std::size_t, 2>&,
                                                     float);
template tensor<float, pinned_space> prebuilt_filled(const std::string&, const std::array<std::size_t, 2>&,
                                                     float);
template tensor<float, mapped_space> prebuilt_filled(const std::string&, const std::array<std::size_t, 2>&,
                                                     float);

}  // namespace ferry::optim::detail
