"""Hands-on assignments: masters, what their notebooks carry along, and how they are graded."""
