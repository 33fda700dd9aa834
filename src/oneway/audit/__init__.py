"""The privacy audit: plays the attackers against a network, and says what they could read."""
