# SPDX-License-Identifier: Apache-2.0
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.scm import Version

required_conan_version = ">=2.4"


class Ferry(ConanFile):
    name = "ferry"
    description = "Moves tensor rows between memory spaces: gather, scatter and sparse optimizer steps on Kokkos"
    license = "Apache-2.0"
    topics = ("kokkos", "cuda", "hpc", "embedding")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        # The libraries beside the main one: files and loaders; ranks, which need files.
        "io": [True, False],
        "distributed": [True, False],
        # The backends that the Kokkos in the graph must have. False asks for nothing.
        "cuda": [True, False],
        "openmp": [True, False],
        # Of a library with CUDA; from CMAKE_CUDA_ARCHITECTURES in tools.cmake.cmaketoolchain:extra_variables, else Kokkos' own.
        "cuda_architectures": [None, "ANY"],
    }
    default_options = {"shared": False, "fPIC": True, "io": True, "distributed": True, "cuda": False, "openmp": True}
    implements = ["auto_shared_fpic"]
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "src/*", "backends/*", "tools/*", "LICENSE"
    test_package_folder = "tests/package"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "ferry", "version.hpp"))
        parts = [re.search(rf"#define FERRY_VERSION_{part} +(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
        self.version = ".".join(parts)

    # set_version() reads the header from the recipe's folder, so the header travels with the recipe.
    exports = "include/ferry/version.hpp"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("kokkos/[>=4.6 <6]", transitive_headers=True, transitive_libs=True)
        self.requires("boost/[>=1.74 <2]", transitive_headers=True, options={"header_only": True})
        if self.options.io:
            self.requires("isa-l/[>=2.30 <3]")
            self.requires("xxhash/[>=0.8 <1]", visible=False)  # its header alone
        self.requires("nlohmann_json/[>=3.9 <4]", visible=False)
        if self.options.cuda:
            self.requires("cuda-toolkit/[>=12.2 <14]", transitive_headers=True, transitive_libs=True)

    def _components(self):
        return ["main"] + [name for name in ("io", "distributed") if self.options.get_safe(name)]

    def build_requirements(self):
        # Making the package builds no tests, and an exported recipe has none next to it.
        has_tests = os.path.isdir(os.path.join(self.recipe_folder, "tests"))
        if has_tests and not self.conf.get("tools.build:skip_test", default=False, check_type=bool):
            self.test_requires("catch2/[>=3.4 <4]")
            self.test_requires("eigen/[>=3.4 <6]")

    # Concepts, three-way comparison and std::jthread, as these releases have them.
    _oldest_compilers = {"gcc": "11", "clang": "16"}

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"ferry runs on Linux, not on {self.settings.os}: it maps and locks pages by POSIX calls")
        check_min_cppstd(self, 20)
        oldest = self._oldest_compilers.get(str(self.settings.compiler))
        if oldest is not None and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"ferry needs {self.settings.compiler} {oldest} or later")
        kokkos = self.dependencies["kokkos"]
        for option in ("cuda", "openmp"):
            # A Kokkos recipe may know neither option; then CMake is the one to find out.
            if self.options.get_safe(option) and kokkos.options.get_safe(option, True) in (False, "False"):
                raise ConanInvalidConfiguration(f"ferry:{option}=True needs kokkos:{option}=True")

    def configure(self):
        if not self.options.io:
            self.options.rm_safe("distributed")
        variables = self.conf.get("tools.cmake.cmaketoolchain:extra_variables", default={}, check_type=dict)
        architectures = variables.get("CMAKE_CUDA_ARCHITECTURES")
        if not self.options.cuda:
            self.options.rm_safe("cuda_architectures")
        elif architectures is not None and self.options.cuda_architectures == None:  # noqa: E711, an option of Conan's
            self.options.cuda_architectures = architectures["value"] if isinstance(architectures, dict) else str(architectures)

    def package_id(self):
        # The library holds code for one Kokkos: its version, its backends, its architectures.
        self.info.requires["kokkos"].full_package_mode()

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["FERRY_BUILD_TOOLS"] = True
        toolchain.cache_variables["FERRY_COMPONENTS"] = ";".join(self._components())
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own ferryConfig.cmake serves every way of consumption. It finds Kokkos by Kokkos' own configuration
        # and sets the compile language, which generated files could not do.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("cmake_file_name", "ferry")
        foreign = {"main": ["kokkos::kokkos", "boost::boost"], "io": ["main", "isa-l::isa-l"], "distributed": ["io"]}
        if self.options.cuda:
            foreign["main"].append("cuda-toolkit::cuda-toolkit")
        for name in self._components():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", "ferry::ferry" if name == "main" else f"ferry::{name}")
            component.libs = ["ferry" if name == "main" else f"ferry_{name}"]
            component.requires = foreign[name]
            component.builddirs = ["lib/cmake/ferry"]
            component.libdirs = ["lib"]  # of a shared library, for programs that run
            component.bindirs = ["bin"]  # of ferry-info
