"""Types of arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
VectorArray = npt.NDArray[np.float32]  # [documents, width]
