"""The demo model's little grammar, its data, and the programs that train and measure the model."""
