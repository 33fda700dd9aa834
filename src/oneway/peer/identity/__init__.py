"""Who a peer is and where it is found: keys, addresses and cards."""
