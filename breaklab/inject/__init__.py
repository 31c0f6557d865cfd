"""Put a break into source bytes and describe the change; pure, touches no disk."""
