"""Level sets, seeded draws of levels, and the schedules made of them."""
