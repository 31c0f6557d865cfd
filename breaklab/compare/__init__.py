"""The healthy and the broken run side by side: numbers, curves, a timeline, a page, a trace."""
