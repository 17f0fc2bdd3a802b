"""What a sweep would measure, predicted from one pass over the target's own answers."""
