"""What source says of tensors: shapes, element types, and the numbers that they hold.

Every answer is known, known in part, or unknown. The arithmetic of shapes is that of
`analysis/program/shapes`; here it is done on the values of a program that was followed.
"""
