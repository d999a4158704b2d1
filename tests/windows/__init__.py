"""Windows: without a run under Wine, nothing shows that the wheel works there."""
