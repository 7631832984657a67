"""Questions of which the answer is known, by what they are about."""
