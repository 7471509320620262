"""What leaves samples out: folds, residuals, leave-one-out models, surfaces of solutions."""
