"""What people see of a value: charts, HTML for notebooks, tables and progress in a terminal."""
