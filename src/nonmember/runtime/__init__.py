"""How work is carried out, as far as results do not depend on it: devices, processes, progress, interruption, files."""
