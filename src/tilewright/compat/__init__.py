"""TVM's names that have no file of their own here: tables from names to what stands behind them."""
