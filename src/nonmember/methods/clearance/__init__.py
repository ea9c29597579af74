"""Calibrated clearance: PRISM's Delta judged by models with planted members."""
