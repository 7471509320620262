"""Estimators with scikit-learn's interface, fitted through their dual problems."""
