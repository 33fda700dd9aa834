"""Page components shared by the pages of a lab, a peer and stored runs."""
