"""Answers without a model (Q1, Q2): a deterministic analyst that reads spans, logs and metrics with SQL.

Rules:
- It knows no scenario, no service and no metric by name, only how calls, errors, gauges and changes relate.
- Each claim names evidence: a plain SELECT with literal values that anybody can run again.
- It says "inconclusive" where the evidence is weak: a blip, a burst, or tables that it can't use.
"""

from __future__ import annotations

from hyve.rules.analyst import analyse

__all__ = ["analyse"]
