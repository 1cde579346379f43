import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class FerryTestPackage(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        # Beside the other build folders and not in the source tree of the test.
        self.folders.build_folder_vars = []
        cmake_layout(self, build_folder=os.path.join(os.pardir, os.pardir, "build", "conan-test-package"))

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
