"""Reading TOML and replacing files, with errors people can act on."""
