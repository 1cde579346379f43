# SPDX-License-Identifier: Apache-2.0
from conan import ConanFile
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.4"


class SystemBoost(ConanFile):
    """Boost's headers as the distribution packages it; find_package() finds it where the distribution put it."""

    name = "boost"
    version = "system"
    description = "Portable C++ source libraries"
    license = "BSL-1.0"
    url = "https://www.boost.org"
    topics = ("hana", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    # The name of Conan Center's option, which makes this a header library to Conan.
    options = {"header_only": [True]}
    default_options = {"header_only": True}

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libboost-dev"], update=True, check=True)

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
