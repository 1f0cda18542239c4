"""Tables of metrics: CSV and its kin, with any column names, wide or long, whole or damaged."""
