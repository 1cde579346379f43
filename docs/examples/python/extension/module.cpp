// SPDX-License-Identifier: Apache-2.0
// The Python side of the tables: capsules in, capsules out, and ferry's errors as Python's.

#include "table.hpp"

#include <ferry/error.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace ferry_tables;

namespace {

constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* legacy_name = "dltensor";

/// Takes the DLPack object out of a capsule, which is used up.
dlpack_object taken(const nb::object& capsule) {
  for (const bool versioned : {true, false}) {
    const char* const name = versioned ? versioned_name : legacy_name;
    if (PyCapsule_IsValid(capsule.ptr(), name) == 0) continue;
    void* const managed = PyCapsule_GetPointer(capsule.ptr(), name);
    if (PyCapsule_SetName(capsule.ptr(), versioned ? "used_dltensor_versioned" : "used_dltensor") != 0)
      throw nb::python_error();
    return {managed, versioned};
  }
  throw nb::value_error("a DLPack capsule is needed that nobody has taken an array from");
}

/// Calls the deleter of an array that nobody took.
void drop(PyObject* capsule) {
  for (const bool versioned : {true, false}) {
    const char* const name = versioned ? versioned_name : legacy_name;
    if (PyCapsule_IsValid(capsule, name) != 0) dlpack_object(PyCapsule_GetPointer(capsule, name), versioned);
  }
}

nb::object capsule_of(dlpack_object array) {
  const bool versioned = array.versioned();
  PyObject* const capsule = PyCapsule_New(array.release(), versioned ? versioned_name : legacy_name, &drop);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

/// The verbs of a table have the same arguments.
template <auto Verb, class Owner>
std::unique_ptr<pending> run(Owner& owner, std::uintptr_t stream, const nb::object& first,
                             const nb::object& second) {
  auto indices = taken(first);
  auto rows = taken(second);
  const nb::gil_scoped_release others_may_run;
  return (owner.*Verb)(stream, std::move(indices), std::move(rows));
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ferry::out_of_range& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const ferry::bad_alloc& error) {  // budget_exceeded, too
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const ferry::io_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  } catch (const ferry::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const ferry::error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace

NB_MODULE(_ferry, module) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::register_exception_translator(&translate);

  nb::class_<pending>(module, "Ticket", "Work in flight; keeps the arrays that it uses.")
      .def("wait", &pending::wait, release())
      .def("ready", &pending::ready)
      .def("then", &pending::then, nb::arg("stream"), release());

  nb::class_<optimizer>(module, "Optimizer")
      .def("step", &run<&optimizer::step, optimizer>, nb::arg("stream"), nb::arg("indices"),
           nb::arg("gradients"))
      .def_prop_rw("lr", &optimizer::get_lr, &optimizer::set_lr);

  nb::class_<table>(module, "Table")
      .def_prop_ro("rows", &table::rows)
      .def_prop_ro("width", &table::width)
      .def_prop_ro("address", &table::address)
      .def_prop_ro("device", &table::where)
      .def("describe", &table::describe)
      .def("zeros", &table::zeros, release())
      .def("uniform", &table::uniform, nb::arg("low"), nb::arg("high"), nb::arg("seed"), release())
      .def("gather", &run<&table::gather, table>, nb::arg("stream"), nb::arg("indices"), nb::arg("out"))
      .def("scatter", &run<&table::scatter, table>, nb::arg("stream"), nb::arg("indices"), nb::arg("rows"))
      .def("scatter_add", &run<&table::scatter_add, table>, nb::arg("stream"), nb::arg("indices"),
           nb::arg("rows"))
      .def("optimizer", &table::make_optimizer, nb::arg("rule"), nb::arg("lr"), release())
      .def(
          "share",
          [](table& source, bool versioned, std::optional<std::int64_t> stream,
             std::optional<device> dl_device) {
            const auto how = !stream       ? table::order::wait
                             : *stream < 0 ? table::order::none
                                           : table::order::of_stream;
            const auto number = static_cast<std::uintptr_t>(stream.value_or(0));
            const device* const target = dl_device ? &*dl_device : nullptr;
            dlpack_object exported = [&] {
              const nb::gil_scoped_release others_may_run;
              return source.share(versioned, how, number, target);
            }();
            return capsule_of(std::move(exported));
          },
          nb::arg("versioned"), nb::arg("stream").none(), nb::arg("device").none())
      .def("save", &table::save, nb::arg("path"), release());

  module.def("make_table", &make_table, nb::arg("space"), nb::arg("label"), nb::arg("rows"), nb::arg("width"),
             release());
  module.def("load_table", &load_table, nb::arg("space"), nb::arg("label"), nb::arg("path"), release());
  module.def("backend", &backend);
  module.def("_finalize", &finalize, release());
  initialize();
}
