"""What is learned and how: the specification that simulator, lab and peer share, and its TOML."""
