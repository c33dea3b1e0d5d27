"""Work that operators do on the host itself, beside launching work on the device."""
