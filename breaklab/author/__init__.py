"""What an instructor needs: lint, and later new, refresh, import, suggest."""
