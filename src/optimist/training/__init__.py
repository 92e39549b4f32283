"""The loop around the learners: collect → update → log → save; evaluation, schedules, seeding."""
