"""What else can hold a policy to what it has seen: self-imitation, and several anchors at once."""
