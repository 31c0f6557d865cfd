"""What a learner did and sees next: hints, events, progress."""
