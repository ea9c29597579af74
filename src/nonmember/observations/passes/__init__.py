"""Forward passes and generation, as Lightning modules: what observations and measurements are made by."""
