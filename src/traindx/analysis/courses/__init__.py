"""How metrics go over a run, described without units: any scale, any spacing, any length."""
