// SPDX-License-Identifier: Apache-2.0
// Tensors, their elements and initial values. See xfail.py.
#include "arrays.hpp"

#include <ferry/distributed.hpp>
#include <ferry/int8.hpp>

#include <span>
#include <string>
#include <utility>

// ---- adopt_into_device: Host memory does not become the device's.
// expected-error: adopt takes host memory over as pinned_space or pageable_space; the other spaces make their
// own
std::vector<float> memory(40);
const std::span<float> span(memory);
// legal: static_cast<void>(ferry::adopt<ferry::pinned_space>(span, 10, 4));
static_cast<void>(ferry::adopt<ferry::device_space>(span, 10, 4));
// or: static_cast<void>(ferry::adopt<ferry::mapped_space>(span, 10, 4));

// ---- after_nothing: Without anything that comes earlier there is nothing to order.
// expected-error: after needs to be told what comes earlier: instances, tickets, futures or plans
const Kokkos::DefaultExecutionSpace second;
// legal: ferry::after(exec, second);
ferry::after(exec);

// ---- after_number: A number does not say what comes earlier.
// expected-error: what comes earlier must be instances of Kokkos execution spaces, tickets, futures or plans
const Kokkos::DefaultExecutionSpace second;
// legal: ferry::after(exec, second);
ferry::after(exec, 3);

// ---- after_without_execution_space: Tickets have no later work; instances do.
// expected-error: the first argument of after is the instance of a Kokkos execution space that comes later
ferry::ticket ticket;
// legal: ferry::after(exec, ticket);
ferry::after(ticket, exec);

// ---- clone_of_number: A number is no array.
// expected-error: tables and batches must be a ferry::tensor
const std::vector<float> list(4);
// legal: static_cast<void>(ferry::clone(exec, list));
static_cast<void>(ferry::clone(exec, 3));

// ---- clone_without_get: The copy is complete once get() returns it.
// expected-first-error: get\(\) of a future returns its result
void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::tensor<float, ferry::mapped_space>& table) {
  // legal: const ferry::tensor<float, ferry::mapped_space> copied = ferry::clone(exec, table).get();
  const ferry::tensor<float, ferry::mapped_space> copied = ferry::clone(exec, table);
}

// ---- concatenate_of_another_type: Ranks exchange bytes.
// expected-error: concatenate moves rows as they are, so parts and whole must have the same element type
// legal: using part_type = ferry::tensor<float, ferry::mapped_space>;
using part_type = ferry::tensor<double, ferry::mapped_space>;

void refused(const Kokkos::DefaultExecutionSpace& exec, const ferry::communicator& comm,
             const ferry::tensor<float, ferry::mapped_space>& batch, part_type& whole) {
  ferry::concatenate(exec, comm, batch, whole).wait();
}

// ---- constant_of_text: Text is neither an element nor a number.
// expected-error: init::constant needs a value of the array's element type, or numbers on both sides
// legal: ferry::init::constant(exec, table, 3);
ferry::init::constant(exec, table, "three");

// ---- copy_of_tensor: A deep copy is a verb.
// expected-first-error: a tensor is not copied by accident
using array = ferry::tensor<float, ferry::mapped_space>;
array table("table", 10, 4);
// legal: const array second = std::move(table);
const array second = table;

// ---- element_by_name: Only integers say where an element is.
// expected-error: an element is named by integers, one for each extent
// legal: table(1, 2) = 3.0F;
table("row", 2) = 3.0F;

// ---- element_of_device: Host code must not rely on reaching device memory, also where it is the host's own.
// expected-error: host code can't rely on reaching elements in device_space; bring them to the host
// legal: table(1, 2) = 3.0F;
device_table(1, 2) = 3.0F;
// or: static_cast<void>(device_table.first(2)(1, 2));

// ---- extents_of_rank_nine: Eight extents are the most.
// expected-error: ferry::extents: a tensor has 1 to 8 extents
// legal: static_cast<void>(ferry::extents<1, 1, 1, 1, 1, 1, 1, 1>::rank);
static_cast<void>(ferry::extents<1, 1, 1, 1, 1, 1, 1, 1, 1>::rank);

// ---- host_reads_device: The host's cores can't follow pointers into a device's own memory.
// expected-error: a host execution space can't dereference rows in device_space; pass an instance of the
// device's execution space
const Kokkos::DefaultHostExecutionSpace host;
ferry::tensor<float, ferry::pinned_space> table("table", 10, 4);
ferry::tensor<float, ferry::device_space> far("far", 2, 4);
ferry::tensor<float, ferry::pageable_space> near("near", 2, 4);
#ifdef FERRY_XFAIL_FIXED
ferry::gather(host, table, indices, near).wait();
#else
ferry::gather(host, table, indices, far).wait();
#if !defined(KOKKOS_ENABLE_CUDA)
// Without a device, its memory is the host's, and the program is legal: there is nothing to refuse.
#error \
    "a host execution space can't dereference rows in device_space; pass an instance of the device's execution space"
#endif
#endif

// ---- narrow_index: The harness's own example: it needs nothing but the language.
// expected-error: an index of 16 bits cannot count the rows of a table
// legal: using index_type = std::int64_t;
using index_type = std::int16_t;

static_assert(sizeof(index_type) >= 4, "an index of 16 bits cannot count the rows of a table");

// ---- open_shared_host_memory: What a handle names lies in a device's memory.
// expected-error: share and open_shared are for memory of devices, in device_space
// legal: using space = ferry::device_space;
using space = ferry::pageable_space;

std::size_t refused(const ferry::shared_handle& handle) {
  return ferry::open_shared<float, space>(handle).rows();
}

// ---- own_array_of_strings: An array of the user's must hold elements as well.
// expected-errors: 1 the elements of an array must be trivially copyable, because verbs copy their bytes
struct names {
  std::vector<std::string> memory;
};

template <>
struct ferry::array_traits<names> {
  using value_type = std::string;
  using memory_space = ferry::pageable_space;
  static constexpr std::size_t static_width = 1;
  static auto ref(names& array) { return ferry::make_ref(array.memory); }
  static auto ref(const names& array) { return ferry::make_ref(array.memory); }
};

void refused() {
  names mine;
  // legal: ferry::scatter(exec, table, indices, batch).wait();
  ferry::scatter(exec, mine, indices, batch).wait();
}

// ---- random_structs: Nothing says what a random struct is, and a pair of 4-bit numbers has no value of its own.
// expected-error: this initialisation needs elements that are numbers
ferry::tensor<ferry::fp4_e2m1_pair_t, ferry::mapped_space> pairs("pairs", 10, 4);
// legal: ferry::init::uniform(exec, codes, 0.0, 1.0, 1);
ferry::init::uniform(exec, structs, 0.0, 1.0, 1);
// or: ferry::init::normal(exec, pairs, 0.0, 1.0, 1);

// ---- share_host_memory: A handle is of a device's memory.
// expected-error: share and open_shared are for memory of devices, in device_space
// legal: using space = ferry::device_space;
using space = ferry::pinned_space;

ferry::shared_handle refused() {
  const ferry::tensor<float, space> table("table", 10, 4);
  return ferry::share(table);
}

// ---- shared_tensor_on_device: Processes share host memory.
// expected-error: processes share host memory, so a shared_tensor is in pageable_space, or in pinned_space
// legal: using where = ferry::pinned_space;
using where = ferry::device_space;

ferry::shared_tensor<float, where> refused(const ferry::communicator& comm) {
  return ferry::shared_tensor<float, where>("table", comm, 10, 4);
}

// ---- slice_of_const_as_batch: Rows of a const tensor may only be read.
// expected-error: the verb writes to this array, but its elements are const
const ferry::tensor<float, ferry::mapped_space> table("table", 4, 4);
ferry::tensor<float, ferry::mapped_space> batch("batch", 4, 4);
// legal: ferry::gather(exec, table, indices, batch.first(2)).wait();
ferry::gather(exec, table, indices, std::as_const(batch).first(2)).wait();

// ---- slice_of_temporary: The memory would be gone before the slice is used.
// expected-error: a slice does not own memory, so it can't be one of a temporary tensor
using table = ferry::tensor<float, ferry::mapped_space>;
// legal: table rows("table", 4, 4);
// legal: static_cast<void>(rows.first(2));
static_cast<void>(table("table", 4, 4).first(2));
// or: static_cast<void>(table("table", 4, 4).rows_between(1, 2));

// ---- split_of_another_type: Ranks exchange bytes.
// expected-error: split moves rows as they are, so batch and part must have the same element type
// legal: using part_type = ferry::tensor<float, ferry::mapped_space>;
using part_type = ferry::tensor<double, ferry::mapped_space>;

void refused(const Kokkos::DefaultExecutionSpace& exec, const ferry::communicator& comm,
             const ferry::tensor<float, ferry::mapped_space>& batch, part_type& part) {
  ferry::split(exec, comm, batch, part).wait();
}

// ---- tensor_in_a_space_of_kokkos: The spaces of Kokkos do not say how memory is obtained.
// expected-first-error: the second template argument of a tensor is one of ferry's memory spaces
// legal: const ferry::tensor<float, ferry::pageable_space> table("table", 10, 2);
const ferry::tensor<float, Kokkos::HostSpace> table("table", 10, 2);

// ---- tensor_in_kernel: A kernel holds a copy of what its lambda captures.
// expected-first-error: a tensor is not copied by accident
// most-lines: 40
void refused(const Kokkos::DefaultExecutionSpace& exec, ferry::tensor<float, ferry::mapped_space>& table,
             Kokkos::View<float*, Kokkos::DefaultExecutionSpace> sums) {
#ifdef FERRY_XFAIL_FIXED
  const auto rows = table.view();
  Kokkos::parallel_for(
      Kokkos::RangePolicy(exec, 0, 10), KOKKOS_LAMBDA(const int i) { sums(i) += rows(i, 0); });
#else
  Kokkos::parallel_for(
      Kokkos::RangePolicy(exec, 0, 10), KOKKOS_LAMBDA(const int i) { sums(i) += table(i, 0); });
#endif
}

// ---- tensor_of_const: A tensor owns what it holds; a view may be of constants.
// expected-error: ferry::tensor: the element type must not be const; use a view for that
// legal: ferry::tensor<float, ferry::device_space> table;
// legal: static_cast<void>(std::as_const(table).view());
ferry::tensor<const float, ferry::device_space> table;

// ---- tensor_of_float_extents: Half a row is none.
// expected-errors: 1 the extents of a tensor are integers
// legal: const ferry::tensor<float, ferry::mapped_space> table("table", 1000, 8);
const ferry::tensor<float, ferry::mapped_space> table("table", 1e3, 8);

// ---- tensor_of_strings: Strings own memory.
// expected-first-error: the elements of a tensor must be trivially copyable
// legal: using element = char;
using element = std::string;
ferry::tensor<element, ferry::mapped_space> names("names", 10, 2);
names(0, 0) = element{};

// ---- tensor_with_execution_space: Verbs take instances, tensors do not.
// expected-error: a tensor takes no execution space instance
// legal: const ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
const ferry::tensor<float, ferry::pageable_space> table(exec, "table", 10, 4);

// ---- tensor_without_extents: A tensor of dynamic extents needs them.
// expected-error: a tensor needs its extents after the label
// legal: const ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
// legal: const ferry::tensor<float, ferry::pageable_space, ferry::extents<10, 4>> fixed("fixed");
const ferry::tensor<float, ferry::pageable_space> table("table");

// ---- tensor_without_label: Messages name it.
// expected-errors: 2 (is|are) its label
#ifdef FERRY_XFAIL_FIXED
const ferry::tensor<float, ferry::mapped_space> table("table", 100, 8);
const ferry::rowwise_int8_tensor<ferry::mapped_space> codes("codes", 100, 8);
#else
const ferry::tensor<float, ferry::mapped_space> table(100, 8);
const ferry::rowwise_int8_tensor<ferry::mapped_space> codes(100, 8);
#endif

// ---- view_with_too_few_indices: One index would be taken for a place in the memory.
// expected-error: ferry::tensor_view: one index for each extent
ferry::tensor<float, ferry::pageable_space, ferry::extents<ferry::dyn, 4>> table("table", 10);
// legal: static_cast<void>(table.view()(1, 2));
static_cast<void>(table.view()(1));

// ---- wide_columns: Each column takes launches of its own, so there are few.
// expected-error: take Kokkos::LayoutLeft, too, if the type fixes at most 8 columns
// legal: using columns = Kokkos::View<float* [8], Kokkos::LayoutLeft, Kokkos::SharedSpace>;
using columns = Kokkos::View<float* [9], Kokkos::LayoutLeft, Kokkos::SharedSpace>;
const columns table("table", 10), batch("batch", 2);
ferry::scatter(exec, table, indices, batch).wait();
