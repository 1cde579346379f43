# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration

required_conan_version = ">=2.4"


class SystemCudaToolkit(ConanFile):
    """The CUDA Toolkit that the machine has: the nvcc of CUDACXX, of CUDA_HOME, of PATH or of /usr/local/cuda."""

    name = "cuda-toolkit"
    version = "system"
    description = "Compiler, headers and libraries for NVIDIA GPUs"
    license = "LicenseRef-NVIDIA-End-User-License-Agreement"
    url = "https://developer.nvidia.com/cuda-toolkit"
    topics = ("cuda", "gpu", "nvcc")
    package_type = "shared-library"
    settings = "os", "arch"

    @staticmethod
    def _nvcc():
        candidates = [os.environ.get("CUDACXX"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"]
        if os.environ.get("CUDA_HOME"):
            candidates.insert(1, os.path.join(os.environ["CUDA_HOME"], "bin", "nvcc"))
        return next((Path(path) for path in candidates if path and os.access(path, os.X_OK)), None)

    def validate(self):
        nvcc = self._nvcc()
        if nvcc is None:
            raise ConanInvalidConfiguration("no nvcc: set CUDACXX or CUDA_HOME, or put nvcc on PATH")
        said = subprocess.run([nvcc, "--version"], text=True, stdout=subprocess.PIPE, check=True).stdout
        release = re.search(r"release (\d+)\.(\d+)", said)
        if release is None or tuple(map(int, release.groups())) < (12, 2):
            raise ConanInvalidConfiguration(f"{nvcc} is too old; CUDA 12.2 or later is needed:\n{said}")

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
        nvcc = self._nvcc()
        if nvcc is not None:
            # Not the resolved path: it would bind the build to one minor release behind the link /usr/local/cuda.
            self.buildenv_info.define_path("CUDACXX", str(nvcc))
            self.buildenv_info.define_path("CUDAToolkit_ROOT", str(nvcc.parent.parent))
