"""Station 2. Policy × environment → Rollout."""
