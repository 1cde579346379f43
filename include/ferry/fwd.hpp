#pragma once

/// Names of the main types, for headers that only mention them.
namespace ferry {

struct device_space;
struct pinned_space;
struct mapped_space;
struct pageable_space;

struct dynamic_rank;

template <class Format>
class narrow_float;
template <class Result>
class future;
class row_plan;
class ticket;

}  // namespace ferry
