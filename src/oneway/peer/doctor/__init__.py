"""What is wrong with a peer, in sentences that name the remedy."""
