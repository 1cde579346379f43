# SPDX-License-Identifier: Apache-2.0
import atexit
import os
import shutil
import tempfile

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class FerryTestPackage(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        # To run ferry-info, too, which is in the package of a static library as well.
        self.requires(self.tested_reference_str, run=True)

    def layout(self):
        # Not in the source tree of ferry, which may be read-only; gone when Conan ends.
        folder = os.path.join(tempfile.gettempdir(), f"ferry-test-package-{os.getuid()}-{os.getpid()}")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cmake_layout(self, build_folder=folder)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        program = os.path.join(self.cpp.build.bindir, "gather_rows")
        if not can_run(self):
            return
        if self.dependencies["ferry"].options.cuda and not os.path.exists("/dev/nvidiactl"):
            self.output.warning("built with CUDA, but this machine has no GPU: the program is not run")
            return
        self.run(program, env="conanrun")
        self.run("ferry-info --no-rates", env="conanrun")
