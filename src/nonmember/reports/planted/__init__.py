"""Audits of targets whose readings were planted: decisions, rates with their intervals, and other methods beside."""
