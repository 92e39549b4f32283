"""The training loop: collect → update → log → save; resume, evaluation, agents."""
