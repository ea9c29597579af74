"""The papers and studies that stand on the instrument: their reports, and the numbers they print."""
