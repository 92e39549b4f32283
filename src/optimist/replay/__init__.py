"""Experience stores: transitions, prioritised transitions, segments and past steps."""
