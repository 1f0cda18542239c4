"""What evidence means, one room for each kind of it; detectors ask here, and look at no form."""
