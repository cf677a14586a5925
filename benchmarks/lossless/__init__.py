"""How often `loadgen lossless` is right: correct servers and planted bugs, in virtual time."""
