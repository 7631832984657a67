"""Leaders and epochs: one leader per epoch, elected from the ISR; epochs never decrease."""
