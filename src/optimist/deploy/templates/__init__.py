"""Files that an export copies as they are: agents for the original game that need numpy and nothing of ours."""
